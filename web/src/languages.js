// SPDX-License-Identifier: Apache-2.0
// What the editor knows of each language: its mode, and a program to begin with.
import { StreamLanguage } from "@codemirror/language";
import { c, cpp, java } from "@codemirror/legacy-modes/mode/clike";
import { go } from "@codemirror/legacy-modes/mode/go";
import { javascript, typescript } from "@codemirror/legacy-modes/mode/javascript";
import { lua } from "@codemirror/legacy-modes/mode/lua";
import { perl } from "@codemirror/legacy-modes/mode/perl";
import { python } from "@codemirror/legacy-modes/mode/python";
import { r } from "@codemirror/legacy-modes/mode/r";
import { ruby } from "@codemirror/legacy-modes/mode/ruby";
import { rust } from "@codemirror/legacy-modes/mode/rust";
import { shell } from "@codemirror/legacy-modes/mode/shell";

const MODES = { python, javascript, typescript, go, shell, bash: shell, c, cpp, java, perl, ruby, lua, rust, r };

export function modeOf(language) {
	const mode = MODES[language];
	return mode ? StreamLanguage.define(mode) : [];
}

const SAMPLES = {
	python:
		'import time\n\nfor n in range(1, 6):\n    print("step", n, "of 5", flush=True)\n    sum(i * i for i in range(1_500_000))\n    time.sleep(0.2)\n',
	javascript: 'const squares = [1, 2, 3].map((n) => n * n);\nconsole.log("hello from", process.version, squares);\n',
	typescript: "const answer: number = 6 * 7;\nconsole.log(`the answer is ${answer}`);\n",
	go: 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello from Go")\n}\n',
	shell: 'echo "hello from $0"\n',
	bash: 'echo "hello from bash $BASH_VERSION"\n',
	c: '#include <stdio.h>\n\nint main(void)\n{\n\tputs("hello from C");\n}\n',
	cpp: '#include <iostream>\n\nint main()\n{\n\tstd::cout << "hello from C++\\n";\n}\n',
	rust: 'fn main() {\n    println!("hello from Rust");\n}\n',
	java: 'public class Main {\n    public static void main(String[] args) {\n        System.out.println("hello from Java");\n    }\n}\n',
	perl: 'print "hello from Perl $^V\\n";\n',
	ruby: 'puts "hello from Ruby #{RUBY_VERSION}"\n',
	lua: 'print("hello from " .. _VERSION)\n',
	php: '<?php\necho "hello from PHP ", PHP_VERSION, "\\n";\n',
	r: 'cat("hello from R\\n")\n',
};

// Languages that have contexts: interpreters of a session that keep their state.
export const CONTEXT_LANGUAGES = ["python", "javascript", "typescript", "bash", "r"];

export const sampleOf = (language) => SAMPLES[language] || "";
export const isSample = (code) => code.trim() === "" || Object.values(SAMPLES).includes(code);
