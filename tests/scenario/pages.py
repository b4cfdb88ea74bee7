# SPDX-License-Identifier: Apache-2.0
"""Commands in the documents: blocks of shell, and the statements that they are made of."""
import re

MAKES_FILE = re.compile(r"^(cat|echo|printf|mkdir|touch)\b.*>|^(mkdir|touch|tar)\b|^export ")


def fenced(text):
	for info, body in re.findall(r"^```(sh|bash|console)([^\n]*\n.*?)^```", text, re.S | re.M):
		rest, _, block = body.partition("\n")
		if "no-run" not in rest:
			yield block


def statements(block):
	lines = block.splitlines()
	while lines:
		words = [re.sub(r"^\$ ", "", lines.pop(0))]
		while words[-1].endswith("\\") and lines:
			words.append(lines.pop(0))
		here = re.search(r"<<-?\s*['\"]?([A-Za-z_]\w*)", words[0])
		while here and lines:
			words.append(lines.pop(0))
			if words[-1].strip() == here.group(1):
				break
		yield "\n".join(words)
