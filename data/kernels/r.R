# SPDX-License-Identifier: Apache-2.0
# The kernel of R contexts (src/session/frames.h has the protocol), in base R alone.  R cannot use a descriptor that it was born with,
# so two cats carry the channel: they are not interrupted, and end with it.  Interrupts are taken while a piece runs and lost otherwise.
# What a piece sees of this is the names of "brig" on the search path.
local({
	input <- pipe("trap '' INT; exec cat <&3", "rb")
	output <- pipe("trap '' INT; exec cat >&3", "wb")
	pages <- file.path(tempdir(), "brig-pages")
	devices <- integer()

	bytes <- function(size) {
		all <- raw()
		while (length(all) < size) {
			piece <- readBin(input, "raw", size - length(all))
			if (length(piece) == 0) base::quit("no") # nobody is there any more
			all <- c(all, piece)
		}
		all
	}
	line <- function() {
		all <- raw()
		while ((byte <- bytes(1)) != 10) all <- c(all, byte)
		words <- strsplit(rawToChar(all), " ", fixed = TRUE)[[1]]
		list(name = words[1], number = as.integer(words[2]))
	}
	text <- function(value) {
		value <- rawToChar(value[value != 0])
		Encoding(value) <- "UTF-8"
		value
	}
	receive <- function() {
		head <- line()
		fields <- lapply(seq_len(head$number), function(i) {
			field <- line()
			list(name = field$name, value = text(bytes(field$number + 1)[seq_len(field$number)]))
		})
		named <- function(name) vapply(Filter(function(f) f$name == name, fields), function(f) f$value, "")
		list(kind = head$name, code = paste(named("code"), collapse = ""), env = named("env"))
	}
	send <- function(kind, fields = list()) suspendInterrupts({
		parts <- list(charToRaw(sprintf("%s %d\n", kind, length(fields))))
		for (name in names(fields)) {
			value <- charToRaw(enc2utf8(fields[[name]]))
			parts <- c(parts, list(charToRaw(sprintf("%s %d\n", name, length(value))), value, as.raw(10)))
		}
		writeBin(do.call(c, parts), output)
		flush(output)
	})

	base64 <- function(value) {
		letters64 <- charToRaw("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
		missing <- (3 - length(value) %% 3) %% 3
		three <- matrix(as.integer(c(value, raw(missing))), nrow = 3)
		four <- rbind(three[1, ] %/% 4L, three[1, ] %% 4L * 16L + three[2, ] %/% 16L, three[2, ] %% 16L * 4L + three[3, ] %/% 64L,
			three[3, ] %% 64L)
		out <- letters64[four + 1L]
		if (missing > 0) out[length(out) + 1 - seq_len(missing)] <- charToRaw("=")
		rawToChar(out)
	}
	open_device <- function(...) {
		dir.create(pages, showWarnings = FALSE)
		form <- if (capabilities("png") && capabilities("cairo")) "png" else "svg"
		place <- file.path(pages, paste0("page%05d.", form))
		if (form == "png") grDevices::png(place, width = 7, height = 5, units = "in", res = 100, type = "cairo")
		else grDevices::svg(place, width = 7, height = 5, onefile = FALSE)
		devices <<- c(devices, grDevices::dev.cur())
	}
	show_pages <- function() {
		if (length(devices) == 0) return()
		for (number in intersect(devices, grDevices::dev.list())) grDevices::dev.off(number)
		devices <<- integer()
		for (place in list.files(pages, full.names = TRUE)) {
			value <- readBin(place, "raw", file.size(place))
			fields <- list(main = "0", text = "<plot>")
			if (endsWith(place, ".png")) fields$png <- base64(value) else fields$svg <- text(value)
			if (length(value) > 0) send("result", fields)
		}
		unlink(pages, recursive = TRUE)
	}

	display <- function(value, main = FALSE) {
		lines <- utils::capture.output(if (isS4(value)) methods::show(value) else print(value))
		if (length(lines) > 0) send("result", list(main = if (main) "1" else "0", text = paste(lines, collapse = "\n")))
		invisible(value)
	}
	tell_error <- function(name, value, trace) send("error", list(name = name, value = value, traceback = paste(trace, collapse = "\n")))

	# The last calls of the piece; those of this file, and of what raises the error, are nobody's business.
	calls_of <- function(calls) {
		own <- which(vapply(calls, function(call) identical(call[[1]], as.name("run_piece")), NA))
		if (length(own) == 0) return(character()) # it was not read
		calls <- calls[-seq_len(max(own) + 3)]
		texts <- vapply(calls, function(call) deparse(call, nlines = 1)[1], "")
		last <- which(startsWith(texts, ".handleSimpleError(") | startsWith(texts, "stop(") | startsWith(texts, "h("))
		texts <- sprintf("%d: %s", seq_along(texts), texts)
		utils::tail(if (length(last) > 0) texts[seq_len(last[1] - 1)] else texts, 100)
	}
	run_piece <- function(expression) withVisible(eval(expression, globalenv()))
	execute <- function(code, name) {
		source <- srcfilecopy(name, strsplit(code, "\n", fixed = TRUE)[[1]])
		pieces <- tryCatch(parse(text = code, srcfile = source, keep.source = TRUE, encoding = "UTF-8"), error = function(e)
			stop(structure(class = c("parseError", "error", "condition"), list(message = conditionMessage(e), call = NULL))))
		for (i in seq_along(pieces)) {
			made <- run_piece(pieces[[i]])
			if (made$visible) display(made$value, i == length(pieces))
		}
	}
	serve <- function(code, name) {
		calls <- list()
		failed <- function(e) tell_error(class(e)[1], conditionMessage(e), c(sub("\n$", "", as.character(e)), calls_of(calls)))
		tryCatch(withCallingHandlers(allowInterrupts(execute(code, name)), error = function(e) calls <<- sys.calls()),
			interrupt = function(e) tell_error("Interrupted", "SIGINT", character()), error = failed)
		tryCatch(show_pages(), error = function(e) message("brig: a plot cannot be shown: ", conditionMessage(e)))
	}
	with_variables <- function(env, action) {
		names <- sub("=.*", "", env)
		before <- Sys.getenv(names, NA)
		if (length(env) > 0) do.call(Sys.setenv, structure(as.list(sub("^[^=]*=", "", env)), names = names))
		action()
		kept <- !is.na(before)
		if (any(kept)) do.call(Sys.setenv, structure(as.list(before[kept]), names = names[kept]))
		Sys.unsetenv(names[!kept])
	}

	leave <- function(...) stop("quit() was called, but this interpreter stays: end the run with stop()", call. = FALSE)
	attach(list(display = display, q = leave, quit = leave), name = "brig", warn.conflicts = FALSE)
	options(warn = 1, device = open_device)
	count <- 0
	suspendInterrupts({
		send("ready")
		repeat {
			frame <- receive()
			tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL) # what was meant for an earlier piece
			if (frame$kind != "run") next
			count <- count + 1
			with_variables(frame$env, function() serve(frame$code, sprintf("cell-%d", count)))
			send("done")
		}
	})
})
