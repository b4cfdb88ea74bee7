# SPDX-License-Identifier: Apache-2.0
# The kernel of shell contexts (src/session/frames.h has the protocol): pieces are evaluated in this shell, so variables,
# functions and the working directory stay.  Its own names begin with __brig_.
exec {__brig_channel}<&3 3>&-
__brig_line() { local LC_ALL=C; IFS=' ' read -r -u "$__brig_channel" "$1" "$2"; }
__brig_bytes() { local LC_ALL=C; IFS= read -r -d '' -N "$2" -u "$__brig_channel" "$1"; IFS= read -r -u "$__brig_channel"; }
__brig_field() { local LC_ALL=C; printf '%s %d\n%s\n' "$1" "${#2}" "$2" >&"$__brig_channel"; }
__brig_interrupted() { __brig_stopped=1; }
__brig_run() {
	trap '__brig_interrupted; return 130' INT
	eval "$__brig_code" 0</dev/null
}
trap '' INT
printf 'ready 0\n' >&"$__brig_channel"
while __brig_line __brig_kind __brig_count; do
	__brig_code= __brig_env=()
	for ((__brig_i = 0; __brig_i < __brig_count; __brig_i++)); do
		__brig_line __brig_name __brig_size || exit 0
		__brig_value=
		((__brig_size > 0)) && __brig_bytes __brig_value "$__brig_size" || { ((__brig_size == 0)) && IFS= read -r -u "$__brig_channel"; }
		case $__brig_name in
		code) __brig_code=$__brig_value ;;
		env) __brig_env+=("$__brig_value") ;;
		esac
	done
	__brig_before=()
	for __brig_value in "${__brig_env[@]}"; do
		__brig_name=${__brig_value%%=*}
		[[ $__brig_name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
		[[ -v $__brig_name ]] && __brig_before+=("$__brig_name=${!__brig_name}") || __brig_before+=("$__brig_name")
		export "$__brig_value"
	done
	__brig_stopped=
	__brig_run
	__brig_status=$?
	trap '' INT
	for __brig_value in "${__brig_before[@]}"; do
		case $__brig_value in
		*=*) export "$__brig_value" ;;
		*) unset "$__brig_value" ;;
		esac
	done
	if [[ $__brig_stopped ]]; then
		printf 'error 3\n' >&"$__brig_channel"
		__brig_field name Interrupted
		__brig_field value SIGINT
		__brig_field traceback ''
	elif ((__brig_status)); then
		printf 'error 3\n' >&"$__brig_channel"
		__brig_field name ExitStatus
		__brig_field value "exit status $__brig_status"
		__brig_field traceback ''
	fi
	printf 'done 0\n' >&"$__brig_channel"
done
