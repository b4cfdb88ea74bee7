# SPDX-License-Identifier: Apache-2.0
"""Questions to brig that run nothing: what this host can enforce, what was run, what the policy says."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import CommandError
from ._options import Options, Pairs, Policy, flat
from ._process import ProcessTransport
from ._transport import Answer, Question, Transport

Path = Union[str, "os.PathLike[str]"]


def answer_text(answer: Answer, statuses: Sequence[int] = (0,)) -> str:
    """What it printed; CommandError, with brig's own words, if it failed."""
    if answer.status not in statuses:
        said = answer.stderr or answer.stdout.decode("utf-8", "replace").strip()
        said = "\n".join(
            line[len("brig: ") :] if line.startswith("brig: ") else line
            for line in said.splitlines()
        )
        raise CommandError(said or f"brig ended with status {answer.status}", answer.status)
    return answer.stdout.decode("utf-8", "replace")


def answer_json(answer: Answer, statuses: Sequence[int] = (0,)) -> Dict[str, Any]:
    text = answer_text(answer, statuses)
    try:
        document = json.loads(text)
    except ValueError:
        raise CommandError(f"brig printed no JSON: {text[:200]!r}", answer.status) from None
    if not isinstance(document, dict):
        raise CommandError("brig printed something else than an object", answer.status)
    return document


def _ask(
    line: List[str],
    pairs: Pairs,
    options: Options,
    transport: Optional[Transport],
    statuses: Sequence[int] = (0,),
) -> Dict[str, Any]:
    question = Question(
        [*line, "--json", *flat(pairs)], b"", options.environ(), options.policy_document()
    )
    return answer_json((transport or ProcessTransport()).query(question), statuses)


def doctor(
    *,
    policy: Optional[Policy] = None,
    preset: Optional[str] = None,
    transport: Optional[Transport] = None,
) -> Dict[str, Any]:
    """What this host can enforce: `ok`, and `rows` with area, name, status, detail and the fix for what is missing."""
    options = Options(policy=policy)
    pairs = options.policy_file()
    if preset is not None:
        pairs.append(("--preset", preset))
    return _ask(["doctor"], pairs, options, transport, statuses=(0, 1))


def policy(
    *,
    trust: Optional[str] = None,
    preset: Optional[str] = None,
    policy: Optional[Policy] = None,
    transport: Optional[Transport] = None,
) -> Dict[str, Any]:
    """Every setting in force: `settings` has key, value, and the layer that set it."""
    options = Options(policy=policy, trust=trust)
    pairs = options.judged()
    if preset is not None:
        pairs.append(("--preset", preset))
    return _ask(["policy", "show"], pairs, options, transport)


def metrics(
    *, state: Optional[Path] = None, transport: Optional[Transport] = None
) -> Dict[str, Any]:
    """What was counted: executions, rates, metrics with labels."""
    options = Options(state=state)
    return _ask(["stats"], options.place(), options, transport)


def history(
    *,
    limit: int = 20,
    verdict: Optional[str] = None,
    since: Optional[str] = None,
    until: Optional[str] = None,
    language: Optional[str] = None,
    trust: Optional[str] = None,
    state: Optional[Path] = None,
    transport: Optional[Transport] = None,
) -> List[Mapping[str, Any]]:
    """What was run, the newest first; `limit` 0 means all.  `show()` tells everything about one of them."""
    options = Options(state=state)
    pairs: Pairs = [("--limit", str(limit)), *options.place()]
    wishes = (
        ("--verdict", verdict),
        ("--since", since),
        ("--until", until),
        ("--lang", language),
        ("--trust", trust),
    )
    pairs += [(name, value) for name, value in wishes if value is not None]
    return list(_ask(["history"], pairs, options, transport)["executions"])


def show(
    id: Optional[str] = None, *, state: Optional[Path] = None, transport: Optional[Transport] = None
) -> Dict[str, Any]:
    """Everything that the history keeps of one run; without an id of the youngest."""
    options = Options(state=state)
    return _ask(["show"], [*options.place(), *([(id, None)] if id else [])], options, transport)


def languages(*, transport: Optional[Transport] = None) -> Dict[str, Any]:
    """The languages, and whether their runtimes are installed."""
    return _ask(["languages"], [], Options(), transport)


def verify_receipt(
    receipt: Mapping[str, Any], *, key: Optional[str] = None, transport: Optional[Transport] = None
) -> Dict[str, Any]:
    """What a receipt proves; with the host's public key also who signed it."""
    text = json.dumps(receipt).encode("utf-8")
    line = ["receipt", "verify", "--json", *(["--key", key] if key else []), "/dev/stdin"]
    return answer_json(
        (transport or ProcessTransport()).query(Question(line, text)), statuses=(0, 1)
    )


def version(*, transport: Optional[Transport] = None) -> str:
    """The version of the brig program."""
    return str(_ask(["version"], [], Options(), transport)["version"])
