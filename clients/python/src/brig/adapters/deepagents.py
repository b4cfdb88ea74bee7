# SPDX-License-Identifier: Apache-2.0
"""A backend for deepagents: its shell commands run in cells, its files are the sandbox's.

    from brig.adapters.deepagents import BrigBackend
    agent = create_deep_agent(model=..., backend=BrigBackend(brig.Sandbox()))

Each command has a cell of its own over the same files, so nothing that one leaves running is there for the next.
"""

from __future__ import annotations

import secrets
from typing import Any, List, Optional, Tuple

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .._errors import BrigError
from .._files import FileMissing
from .._sandbox import Sandbox


class BrigBackend(BaseSandbox):  # type: ignore[misc]  # an optional package
    """Whatever BaseSandbox needs, on a brig sandbox."""

    def __init__(self, sandbox: Optional[Sandbox] = None) -> None:
        self.sandbox = sandbox if sandbox is not None else Sandbox()
        self._id = f"brig-{secrets.token_hex(6)}"

    @property
    def id(self) -> str:
        return self._id

    def execute(self, command: str, *, timeout: Optional[int] = None) -> Any:
        """Runs a line of shell; what was blocked or refused is in the output, with what to do instead."""
        r = self.sandbox.exec(command, timeout=timeout)
        output = r.stdout + r.stderr
        if r.verdict not in ("ok", "error"):
            output += f"{r.verdict}: {r.reason}\n{r.remedy}".rstrip() + "\n"
        code = r.exit_code if r.exit_code is not None else 126 if r.verdict == "blocked" else 1
        return ExecuteResponse(output=output, exit_code=code, truncated=r.truncated)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[Any]:
        return [self._upload(path, data) for path, data in files]

    def _upload(self, path: str, data: bytes) -> Any:
        try:
            self.sandbox.files.write(path, data)
        except (BrigError, OSError) as e:
            return FileUploadResponse(path=path, error=str(e))
        return FileUploadResponse(path=path, error=None)

    def download_files(self, paths: List[str]) -> List[Any]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> Any:
        try:
            return FileDownloadResponse(
                path=path, content=self.sandbox.files.read(path), error=None
            )
        except FileMissing:
            return FileDownloadResponse(path=path, content=None, error="file_not_found")
        except (BrigError, OSError) as e:
            return FileDownloadResponse(path=path, content=None, error=str(e))
