# SPDX-License-Identifier: Apache-2.0
"""Tools for LangChain and LangGraph agents.

    from brig.adapters.langchain import brig_tools
    agent = create_agent(model, tools=brig_tools(sandbox))
"""

from __future__ import annotations

import asyncio
from typing import Any, List, Sequence

from .. import tools as _tools
from .._sandbox import Sandbox


def _functions(name: str, sandbox: Sandbox) -> Any:
    def call(**arguments: Any) -> str:
        return _tools.dispatch(name, arguments, sandbox)

    async def call_async(**arguments: Any) -> str:
        return await asyncio.to_thread(_tools.dispatch, name, arguments, sandbox)

    return call, call_async


def brig_tools(sandbox: Sandbox, names: Sequence[str] = _tools.NAMES) -> List[Any]:
    """The tools of brig.tools as StructuredTool objects on one sandbox."""
    from langchain_core.tools import StructuredTool

    made = []
    for name in names:
        call, call_async = _functions(name, sandbox)
        made.append(
            StructuredTool(
                name=name,
                description=_tools.description(name),
                args_schema=_tools.parameters(name),
                func=call,
                coroutine=call_async,
            )
        )
    return made
