#!/usr/bin/env python3
"""The MCP server, by the SDK's own client over stdio, in both eras of the protocol: test_mcp.py BUILD SOURCE PACKAGES"""
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile

build, source, packages = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, packages)
try:
    import jsonschema
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.exceptions import MCPError
except ImportError as error:
    print(f"SKIP: {error}")
    sys.exit(77)

GPUMEM = build + "/report/gpumem"
folder = tempfile.mkdtemp()
environment = dict(os.environ, PYTHONPATH=os.pathsep.join((packages, source + "/python")), XDG_CACHE_HOME=folder + "/cache",
                   LD_LIBRARY_PATH=build + "/sim", GPUMEM_SIM_MEMORY="2G")
failed = []


def expect(good, text):
    if not good:
        failed.append(text)
        print("FAIL: " + str(text)[:500], file=sys.stderr)


def server(*options):
    return Client(StdioServerParameters(command=sys.executable, args=[source + "/python/gpumem_mcp.py", "--gpumem", GPUMEM,
                                                                      "--folder", folder + "/traces", *options], env=environment))


async def refused(client, name, arguments, what):
    try:
        result = await client.call_tool(name, arguments)
        expect(False, f"{what}: {result}")
    except MCPError:
        pass


async def checked(client, tools, name, arguments):
    """What a tool answers, as its own schema has it."""
    result = await client.call_tool(name, arguments)
    jsonschema.validate(result.structured_content, tools[name].output_schema)
    expect(json.loads(result.content[0].text) == result.structured_content, f"{name}: text and structure differ")
    return result


async def check_era(mode):
    parameters = server()
    parameters.mode = mode
    async with parameters as client:
        print(mode, client.protocol_version)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expect(sorted(tools) == ["diff", "finding", "memory", "site", "verdict", "whatif"], f"{mode}: {sorted(tools)}")
        expect(all(tool.annotations.read_only_hint for tool in tools.values()), f"{mode}: a tool that is not read-only")
        verdict = (await checked(client, tools, "verdict", {"trace": "demo.trace"})).structured_content
        finding = (await checked(client, tools, "finding", {"trace": "demo.trace", "id": verdict["rows"][0]["id"]})).structured_content
        expect(finding["code"] == "out-of-memory", f"{mode}: {finding}")
        await checked(client, tools, "site", {"trace": "demo.trace", "id": finding["site"]})
        for question in ("peak", "owners", "leaks", "oom", "growth"):
            answer = (await checked(client, tools, "memory", {"trace": "demo.trace", "question": question})).structured_content
            expect(answer["question"] == question, f"{mode}: {answer}")
        owners = {"trace": "demo.trace", "question": "owners", "at": "end", "by": "line", "device": 0, "cursor": "0"}
        expect((await checked(client, tools, "memory", owners)).structured_content["at"] == "end", f"{mode}: owners at the end")
        expect(not (await checked(client, tools, "diff", {"trace": "demo.trace", "base": "demo.trace"})).structured_content["differs"], mode)
        for name, arguments in (("whatif", {"trace": "demo.trace"}), ("verdict", {"trace": "absent.trace"})):
            result = await checked(client, tools, name, arguments)
            expect(result.is_error and result.structured_content["error"]["code"] in ("no-pool", "unreadable"), f"{mode}: {result}")
        outside = ("../secret.trace", folder + "/secret.trace", "link.trace", "a/../../secret.trace")
        for name in outside:
            await refused(client, "verdict", {"trace": name}, f"{mode}: a trace elsewhere, {name}")
        expect((await client.call_tool("verdict", {"trace": "--help"})).is_error, f"{mode}: a trace that looks like an option")
        for name, arguments in (("verdict", {"trace": 1}), ("verdict", {"size": "1M"}), ("finding", {"trace": "demo.trace"}),
                                ("finding", {"id": "--help00"}), ("memory", {"question": "verdict"}),
                                ("memory", {"question": "owners", "at": "--debuginfod"}), ("diff", {"base": "../secret.trace"}),
                                ("record", {"command": ["true"], "output": "new.trace"}), ("nothing", {})):
            await refused(client, name, arguments, f"{mode}: {name} {arguments}")
        resources = (await client.list_resources()).resources
        expect([one.name for one in resources] == ["demo.trace", "link.trace", "two words.trace"], f"{mode}: {resources}")
        for one in (resources[0], resources[2]):
            text = (await client.read_resource(one.uri)).contents[0].text
            expect(json.loads(text)["rows"] == verdict["rows"], f"{mode}: {one.uri}: {text}")
        for uri in ("gpumem://trace/..%2Fsecret.trace", "file:///etc/passwd", "gpumem://trace/link.trace"):
            try:
                expect(False, f"{mode}: {uri}: {await client.read_resource(uri)}")
            except MCPError:
                pass


async def check_record():
    async with server("--allow-record") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expect(len(tools) == 7 and not tools["record"].annotations.read_only_hint, f"with record: {sorted(tools)}")
        command = {"command": [build + "/tests/training_loop"], "output": "new.trace"}
        result = await checked(client, tools, "record", command)
        expect(result.structured_content.get("rows"), f"recorded: {result}")
        await refused(client, "record", command, "a trace that is there is written over")
        await refused(client, "record", {"command": ["true"], "output": "../new.trace"}, "a trace elsewhere is written")
        await refused(client, "record", {"command": "true", "output": "x.trace"}, "a command for a shell")


os.mkdir(folder + "/traces")
subprocess.run([GPUMEM, "run", "-q", "--output", folder + "/traces/demo.trace", "--", build + "/tests/training_loop"],
               env=environment, stdout=subprocess.DEVNULL, check=True)
shutil.copy(folder + "/traces/demo.trace", folder + "/secret.trace")
shutil.copy(folder + "/traces/demo.trace", folder + "/traces/two words.trace")
os.symlink("../secret.trace", folder + "/traces/link.trace")
for era in ("legacy", "2026-07-28"):
    asyncio.run(check_era(era))
asyncio.run(check_record())
shutil.rmtree(folder)
print("FAILED" if failed else "passed")
sys.exit(bool(failed))
