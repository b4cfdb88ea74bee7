# SPDX-License-Identifier: Apache-2.0
"""An agent that fixes a failing test, with a model that is a script.

    python3 examples/python/agent.py

The loop is the one that any API for models with tools needs: the model sees the conversation and answers with calls of
tools; each call is carried out in a sandbox; its answer goes back.  Put a real client where ScriptedModel is: the tools
are `brig.tools.schema("anthropic")`, and `answer_anthropic` makes the blocks that go back.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List

import brig
from brig import tools

PROJECT = {
    "prices.py": "def total(prices, discount):\n    return sum(prices) * discount\n",
    "test_prices.py": (
        "import unittest\n\nimport prices\n\n\nclass Total(unittest.TestCase):\n"
        "    def test_discount(self):\n        self.assertEqual(prices.total([10, 20], 0.5), 15)\n\n"
        "    def test_no_discount(self):\n        self.assertEqual(prices.total([10, 20], 0), 30)\n"
    ),
}


class ScriptedModel:
    """Stands for a language model: looks at what came back, and says the next thing to do."""

    def __init__(self) -> None:
        self.script = [
            ("run_tests", {}),
            ("read_file", {"path": "prices.py"}),
            (
                "write_file",
                {
                    "path": "prices.py",
                    "content": "def total(prices, discount):\n    return sum(prices) * (1 - discount)\n",
                },
            ),
            ("run_tests", {}),
        ]

    def reply(self, messages: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        if not self.script:
            return [
                {
                    "type": "text",
                    "text": "The discount was taken as the share that is left. Fixed, and the tests pass.",
                }
            ]
        name, arguments = self.script.pop(0)
        return [
            {"type": "tool_use", "id": f"call-{len(messages)}", "name": name, "input": arguments}
        ]


def work(model: ScriptedModel, sandbox: brig.Sandbox, task: str, most_turns: int = 20) -> str:
    """Lets the model use its tools until it answers in words."""
    messages: List[Dict[str, Any]] = [{"role": "user", "content": task}]
    for _ in range(most_turns):
        content = model.reply(messages)
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return str(content[0]["text"])
        answers = [tools.answer_anthropic(block, sandbox) for block in calls]
        for block, answer in zip(calls, answers):
            print(f"{block['name']}: {answer['content'].splitlines()[0]}")
        messages.append({"role": "user", "content": answers})
    return "gave up"


def main() -> int:
    with brig.Sandbox(files=PROJECT, timeout=60) as sandbox:
        print(
            work(
                ScriptedModel(), sandbox, "A test of this project fails. Find out why, and fix it."
            )
        )
        report = sandbox.test().tests
        return 0 if report is not None and report.failed == 0 and report.passed == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
