#!/usr/bin/env python3
"""Chat templates rendered by Heddle, against jinja2.

    tests/conformance/check_templates.py --render build/release/render_template FOLDER-OR-FILE...

Renders every *.jinja with conversations of many shapes: roles, parts, tools, calls of tools, thoughts, odd
white space, names of special tokens in what people write. jinja2 is set up as transformers does it. Each
case must come out the same to the byte; where jinja2 fails, Heddle must refuse; what Heddle alone refuses
is counted, and must name the construct.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 7, 4, 13, 5, 9)


class Generation(jinja2.ext.Extension):
    """{% generation %}: a block that marks what the model wrote; it changes no text."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads  # not of transformers; templates of others use it
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place.\nNow, or on a day.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "a city, \"Zürich\" or 北京"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": ["integer", "null"], "minimum": 0},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}, "tags": {
            "type": "array", "items": {"type": "string"}}}, "required": ["lat"]}},
        "required": ["place", "unit"], "additionalProperties": False},
    "return": {"type": "string", "description": "degrees"}, "strict": True}}
EMPTY = {"type": "function", "function": {"name": "ping", "description": "", "parameters": {
    "type": "object", "properties": {}}}}
BARE = {"name": "add", "description": "adds <b>two</b> numbers & more", "parameters": {
    "type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "number"}]},
                                     "b": {"$ref": "#/x", "description": None}}}}
SEVERAL = {"type": "function", "function": {"name": "search", "description": "looks for it", "parameters": {
    "type": "object", "properties": {"q": {"type": "string"}, "top": {"type": "integer", "maximum": 10.5},
                                     "flags": {"type": "array", "items": {"type": "object", "properties": {
                                         "on": {"type": "boolean", "default": True}}}}}, "required": ["q"]}}}
TOOLS = [[WEATHER], [WEATHER, EMPTY], [EMPTY], [SEVERAL, WEATHER], [BARE], []]

WORDS = ["Hello", "what's 2+2?", " spaced ", "\n", "a\nb", "", "<|im_end|>", "[INST]", "</s>", "naïve 北京 👍🏽",
         "\"quoted\" \\ 'single'", "<think>hm</think>\n\nSo", "{{ 1 }} {% if %}", "tab\tend", "<b>&amp;</b>",
         "[THINK]x[/THINK]", "```json\n{\"a\": 1}\n```", "ﬁ ß İ", "x" * 70, "<think>\nlong\n</think>answer",
         "\u00a0nbsp\u3000", "<|channel|>final<|message|>yes", "/no_think", "/think please"]


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def with_calls(draw):
    """A turn in which a tool is asked and answers."""
    arguments = draw.choice([{"place": "北京", "unit": "celsius"}, {}, {"n": 1, "f": 2.5, "t": True, "x": None,
                            "l": [1, "a"], "o": {"k": "v"}}, {"q": "a \"b\"\n</s>"}])
    if draw.random() < 0.4:
        arguments = json.dumps(arguments, ensure_ascii=draw.random() < 0.5)
    calls = [call("get_weather", arguments, id="call00001")]
    if draw.random() < 0.4:
        calls.append(call("search", {"q": "x"}, id="call00002"))
    asks = {"role": "assistant", "content": draw.choice([None, "", "Let me see.", " \n"]), "tool_calls": calls}
    if draw.random() < 0.2:
        del asks["content"]
    if draw.random() < 0.3:
        asks[draw.choice(["reasoning_content", "thinking", "reasoning"])] = draw.choice(["I must ask.", ""])
    answers = [{"role": "tool", "name": c["function"]["name"], "tool_call_id": c["id"],
                "content": draw.choice(["21", "{\"t\": 21}", "", "sunny\n", draw.choice(WORDS)])} for c in calls]
    if draw.random() < 0.2:
        answers[0]["content"] = [{"type": "text", "text": "21"}]
    if draw.random() < 0.15:
        answers[0]["content"] = draw.choice([{"t": 21}, 21, [1, 2]])
    return [asks, *answers]


def content(draw, gentle):
    words = " ".join(draw.choice(WORDS) for _ in range(draw.choice([1, 1, 2, 4])))
    kind = draw.random()
    if gentle or kind < 0.75:
        return words
    parts = [{"type": "text", "text": words}]
    if kind > 0.9:
        parts.insert(draw.randrange(2), draw.choice([{"type": "image"}, {"type": "text", "text": "more"},
                     {"type": "image_url", "image_url": {"url": "x"}}, {"type": "video"}, {"type": "audio"}]))
    return parts


def conversation(draw):
    """A gentle one is what nearly all templates take: texts, and roles in turns."""
    messages, gentle = [], draw.random() < 0.5
    if draw.random() < 0.5:
        messages.append({"role": "system" if gentle or draw.random() < 0.8 else "developer", "content": content(draw, gentle)})
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        messages.append({"role": "user", "content": content(draw, gentle)})
        if draw.random() < (0.1 if gentle else 0.35):
            messages += with_calls(draw)
        answer = {"role": "assistant", "content": content(draw, gentle)}
        if draw.random() < 0.25:
            answer[draw.choice(["reasoning_content", "thinking", "reasoning"])] = draw.choice(["Thought.", "", "\nA\nB\n", None])
        messages.append(answer)
    if gentle or draw.random() < 0.7:
        messages.append({"role": "user", "content": content(draw, gentle)})
    elif draw.random() < 0.3:
        messages += with_calls(draw)
    if not gentle and draw.random() < 0.1:
        draw.shuffle(messages)
    if not gentle and draw.random() < 0.05:
        messages.append({"role": "narrator", "content": "odd"})
    return messages


def context(draw):
    values = {"messages": conversation(draw), "add_generation_prompt": draw.random() < 0.5}
    if draw.random() < 0.9:
        values |= {"bos_token": "<s>", "eos_token": "</s>"}
    if draw.random() < 0.8:
        values |= {"datetime": "Sat 4 Jul", "functions": json.dumps([WEATHER])}
    if draw.random() < 0.45:
        values["tools"] = draw.choice(TOOLS)
    elif draw.random() < 0.3:
        values["tools"] = None
    for name, choices in {"enable_thinking": [True, False], "thinking": [True, False], "documents": [
            [], [{"title": "A", "text": "b"}], None], "reasoning_effort": ["low", "high", "medium", "none"],
            "date_string": ["26 Jul 2024"], "custom_tools": [[WEATHER]], "builtin_tools": [["web_search"]],
            "model_identity": ["You are X."], "keep_past_thinking": [True, False], "tools_in_user_message": [True, False],
            "preserve_thinking": [True, False], "add_vision_id": [True], "pad_token": ["<pad>"],
            "controls": [{"length": 5}], "continue_final_message": [True, False], "clear_thinking": [True, False],
            "thinking_budget": [0, 512, -1], "force_reasoning": [True]}.items():
        if draw.random() < 0.12:
            values[name] = draw.choice(choices)
    return values


def plain_contexts():
    """What every template must get right: short conversations of everyday."""
    turn = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "Who are you?"}]
    system = [{"role": "system", "content": "Be brief."}]
    for messages, prompt in itertools.product([turn[:1], turn, system + turn[:1], system + turn], [True, False]):
        yield {"messages": messages, "add_generation_prompt": prompt, "bos_token": "<s>", "eos_token": "</s>"}


def expected(template, values):
    try:
        return template.render(**values)
    except Exception as e:  # whatever Python raises in the middle of a template
        return e


def judge(ours, theirs):
    if type(theirs) is jinja2.TemplateError:  # the template's own words
        return "both refuse" if str(theirs) in ours.get("refused", "") else "should refuse"
    if isinstance(theirs, Exception):
        return "both refuse" if "refused" in ours else "should refuse"
    if "refused" in ours:
        return "refused by name" if ours["unsupported"] else "should render"
    return "same" if ours["text"] == theirs else "different"


def show(path, values, ours, theirs):
    print(f"{path.name}: {json.dumps(values, ensure_ascii=False)}\n  Heddle: {ours}\n  jinja2: {theirs!r}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--render", required=True)
    arguments.add_argument("--count", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--show", type=int, default=3, help="so many differences of each template")
    arguments.add_argument("paths", nargs="+", type=Path)
    a = arguments.parse_args()
    files = [f for p in a.paths for f in (sorted(p.glob("*.jinja")) if p.is_dir() else [p])]
    if not files:
        sys.exit(f"{a.paths[0]}: no *.jinja there")
    env, total, faults = environment(), Counter(), 0
    for path in files:
        draw = random.Random(f"{a.seed} {path.name}")
        cases = [*plain_contexts(), *(context(draw) for _ in range(a.count))]
        asked = "".join(f"{path}\n{json.dumps(values)}\n" for values in cases)
        done = subprocess.run([a.render], input=asked, capture_output=True, text=True, check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        try:
            template = env.from_string(path.read_text())
        except jinja2.TemplateSyntaxError as e:
            template, broken = None, e
        counts, shown = Counter(), 0
        for values, ours in zip(cases, answers, strict=True):
            theirs = expected(template, values) if template else broken
            verdict = judge(ours, theirs)
            counts[verdict] += 1
            if verdict in ("different", "should refuse", "should render"):
                faults += 1
                if (shown := shown + 1) <= a.show:
                    show(path, values, ours, theirs)
        total += counts
        print(f"{path.name}: " + ", ".join(f"{verdict} {n}" for verdict, n in counts.items()))
    print(f"{len(files)} templates: " + ", ".join(f"{verdict} {n}" for verdict, n in total.items()))
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
