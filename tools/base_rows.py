"""Endless tool-calling examples for training the embedded base: tools, requests and small talk, all made up.

What is to be learned is general: to find the tool that fits among those declared, to copy values and the
names of arguments, and to call nothing when nothing fits. So the tools are different in every example. The
tools of the sample that a person fine-tunes on are not among them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tools import base_words as words
from tools.everyday import Asked, EverydayTool, ask, everyday, offered_schema
from tools.sample_phrases import TOOLS as SAMPLE_TOOLS
from tools.sample_phrases import Row

Value = str | int | float | bool
_SAMPLE_NAMES = {tool.name for tool in SAMPLE_TOOLS}
_JOINTS = (" and ", " and then ", ", then ", "; also ")
_KINDS = (
    "person", "place", "day", "time", "number", "number", "text", "text", "text", "code", "choice", "choice",
    "switch",
)  # fmt: skip
_POLITENESS = (
    "{}", "{}", "{}", "{}", "{}", "{}", "{}", "please {}", "{} please", "can you {}?", "could you {}?",
    "I want to {}", "hey, {}", "I need to {}", "{} now", "{} for me", "would you {}?", "let us {}", "hi, {}",
    "{}, thanks", "ok {}", "I would like you to {}", "{}!", "{}.", "help me {}", "just {}", "will you {}?",
)  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """A parameter of a tool: its name, what kind its values are, its choices if it has any."""

    name: str
    kind: str
    json_type: str
    choices: tuple[str, ...] = ()
    required: bool = True
    usual: bool = True
    """Whether its name is one that such values often have."""


@dataclass(frozen=True)
class Tool:
    """A tool made up for one example. `verb` and `noun` are as people say them; the name may say neither."""

    name: str
    verb: str
    noun: str
    arguments: tuple[Argument, ...]
    described: str


@dataclass(frozen=True)
class Novelty:
    """What of an example is held out: its words for tools and arguments, or its ways to ask."""

    tools: bool = False
    phrasing: bool = False


def example_rows(seed: int, novelty: Novelty = Novelty(), *, everyday_share: float = 0.0) -> Iterator[Row]:
    """Examples without end, the same for the same seed; a part of them of everyday tools."""
    generator = random.Random(seed)
    maker = Maker(generator, novelty)
    while True:
        yield maker.everyday_row() if everyday_share and generator.random() < everyday_share else maker.row()


class Maker:
    """Makes one example."""

    def __init__(self, generator: random.Random, novelty: Novelty) -> None:
        self._random = generator
        self._novelty = novelty

    def row(self) -> Row:
        """A request with one call, two, or none: about one in seven asks for nothing that is offered."""
        kind = self._random.random()
        if kind < 0.15:
            return self._unanswerable()
        return self._answered(2 if kind < 0.25 else 1)

    def everyday_row(self) -> Row:
        """The same with tools that people have, some made-up ones beside them."""
        kind = self._random.random()
        known = everyday().held_out_tools if self._novelty.tools else everyday().tools
        tools = self._random.sample(known, 4)
        others = self._random.choice((0, 1, 1, 2, 2, 3))
        calls = 0 if kind < 0.15 else 2 if kind < 0.25 else 1
        asked = [self._asked(tool) for tool in tools[: max(calls, 1)]]
        schemas = [one.schema for one in asked if calls]
        schemas += [offered_schema(tool, self._random) for tool in tools[len(asked) :][:others]]
        if not schemas or self._random.random() < 0.3:
            schemas += [self._schema(tool) for tool in self._offered(self._random.choice((1, 2)))]
        named = {str(schema["name"]): schema for schema in reversed(schemas)}
        said = self._random.choice(_JOINTS).join(
            one.said.rstrip("?") if calls > 1 else one.said for one in asked
        )
        if not calls and self._random.random() < 0.6:
            row: Row = {"query": self._small_talk()}
        else:
            row = {"query": said if _says_enough(said) else self._spoken(said)}
        offered = list(named.values())
        self._random.shuffle(offered)
        row |= {"tools": offered, "answers": [one.call for one in asked] if calls else []}
        if self._random.random() < 0.2:
            reasons = [reason for one in asked for reason in one.reasons] if calls else ["no tool fits"]
            row |= {"reasoning": "; ".join(reasons)} if reasons else {}
        return row

    def _small_talk(self) -> str:
        if self._random.random() < 0.5:
            return self._random.choice(
                everyday().held_out_talk if self._novelty.phrasing else everyday().talk
            )
        return self._made_up_talk()

    def _made_up_talk(self) -> str:
        return self._filled(self._random.choice(words.SMALL_TALK.of(held_out=self._novelty.phrasing)))

    def _asked(self, tool: EverydayTool) -> Asked:
        return ask(tool, self._random, self._everyday_value, held_out=self._novelty.phrasing)

    def _everyday_value(self, kind: str) -> tuple[str, Value]:
        chance = self._random.random()
        if kind == "small":
            return self._number("integer") if chance < 0.2 else _same_number(self._random.randint(1, 100))
        if kind == "thing":
            word = self._noun() if chance < 0.5 else self._filled("{a}" if chance < 0.7 else "{a} {b}")
            return _same(f"the {word}" if self._random.random() < 0.15 else word)
        if kind == "company":
            word = self._made_up() if chance < 0.5 else self._plain_word()
            return _same(word.capitalize())
        if kind == "file":
            return _same(self._plain_word() + self._random.choice((".txt", ".pdf", ".csv", "", ".md")))
        if kind == "room":
            return _same(self._random.choice(words.ROOMS) if chance < 0.6 else self._plain_word())
        if kind == "person" and chance < 0.3:
            return _same(self._random.choice(words.PEOPLE))
        if kind == "time" and chance < 0.25:
            return self._random.choice(words.SPOKEN_TIMES)
        if kind == "text" and chance < 0.5:
            return _same(self._filled(self._random.choice(words.SENTENCES)))
        json_type = self._random.choice(("integer", "integer", "number"))
        return self._value(Argument("", kind, json_type))

    def _answered(self, calls: int) -> Row:
        offered = self._offered(calls + self._random.choice((0, 1, 1, 2, 2, 3) if calls == 1 else (0, 1)))
        tools = self._random.sample(offered, calls)
        said, answers, reasons = [], [], []
        for tool in tools:
            text, arguments, why = self._request(tool, offered)
            said.append(text)
            answers.append({"name": tool.name, "arguments": arguments})
            reasons.extend(why)
        row: Row = {"query": self._spoken(self._random.choice(_JOINTS).join(said))}
        row["tools"] = [self._schema(tool) for tool in offered]
        row["answers"] = answers
        if reasons and self._random.random() < 0.25:
            row["reasoning"] = "; ".join(reasons)
        return row

    def _unanswerable(self) -> Row:
        offered = self._offered(self._random.choice((2, 3, 4)))
        missing = offered.pop()
        if self._random.random() < 0.6:
            said = self._made_up_talk()
        else:
            said = self._spoken(self._request(missing, [missing, *offered])[0])
        row: Row = {"query": said, "tools": [self._schema(tool) for tool in offered], "answers": []}
        if self._random.random() < 0.15:
            row["reasoning"] = "no tool fits"
        return row

    def _offered(self, count: int) -> list[Tool]:
        """Tools of different names, often close to each other: the same verb or the same thing."""
        tools: list[Tool] = []
        while len(tools) < count:
            verb, noun = self._verb(), self._noun()
            closeness = self._random.random()
            if tools and closeness < 0.2:
                verb = self._random.choice(tools).verb
            elif tools and closeness < 0.35:
                noun = self._random.choice(tools).noun
            tool = self._tool(verb, noun)
            known = {one.name for one in tools} | _SAMPLE_NAMES
            if tool.name not in known and all(
                (tool.verb, tool.noun) != (one.verb, one.noun) for one in tools
            ):
                tools.append(tool)
        return tools

    def _tool(self, verb: str, noun: str) -> Tool:
        names: dict[str, Argument] = {}
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 2, 2, 3))):
            argument = self._argument()
            names.setdefault(argument.name, argument)
        name = self._name(verb, noun)
        opaque = verb not in name.lower() and noun.replace(" ", "_") not in name
        described = self._described(verb, noun) if opaque or self._random.random() < 0.6 else ""
        return Tool(name, verb, noun, tuple(names.values()), described)

    def _name(self, verb: str, noun: str) -> str:
        parts = [verb, *noun.split()]
        style = self._random.random()
        if style < 0.1:
            return verb + "".join(part.capitalize() for part in noun.split())
        if style < 0.15:
            return "_".join([*parts[1:], verb])
        if style < 0.2:
            return "_".join(parts[1:])
        if style < 0.28:
            return self._random.choice((self._made_up(), f"{self._made_up()}_{self._made_up()}", verb))
        return "_".join(parts)

    def _described(self, verb: str, noun: str) -> str:
        article = self._random.choice(("", "a ", "the ", "some "))
        tail = self._random.choice((
            "", "", "", f" of a {self._noun()}", f" for the {self._noun()}", " by name",
            f" or {self._noun()}", f", {self._adjective()} or not",
        ))  # fmt: skip
        return f"{verb} {article}{noun}{tail}"

    def _argument(self) -> Argument:
        kind = self._random.choice(_KINDS)
        usual = self._random.random() < (0.55 if kind != "switch" else 0.8)
        name = self._random.choice(words.KINDS[kind].of(held_out=self._novelty.tools)) if usual else (
            self._noun().replace(" ", "_")
        )  # fmt: skip
        required = self._random.random() < 0.6
        if kind == "choice":
            known = words.CHOICES.get(name) if self._random.random() < 0.5 else None
            options = known.training if known else tuple(dict.fromkeys(self._plain_word() for _ in range(4)))
            chosen = self._random.sample(
                options, self._random.randint(min(2, len(options)), min(4, len(options)))
            )
            return Argument(name, kind, "string", tuple(chosen), required, usual)
        if kind == "number":
            json_type = self._random.choice(("integer", "integer", "number"))
            return Argument(name, kind, json_type, (), required, usual)
        return Argument(name, kind, "boolean" if kind == "switch" else "string", (), required, usual)

    def _request(self, tool: Tool, offered: list[Tool]) -> tuple[str, dict[str, Value], list[str]]:
        """What is said to use the tool, the arguments that are meant, and how each follows from the words."""
        parts, arguments, reasons = [], {}, []
        for argument in tool.arguments:
            if not argument.required and self._random.random() < 0.4:
                continue
            words_said, value, phrase = self._mention(argument, tool)
            parts.append(phrase)
            arguments[argument.name] = value
            spelled = str(value).lower() if isinstance(value, bool) else value
            same = words_said == str(value)
            reasons.append(f"'{words_said}' -> {argument.name}" + ("" if same else f" {spelled}"))
        self._random.shuffle(parts)
        return self._ordered(self._opening(tool, offered), parts), arguments, reasons

    def _opening(self, tool: Tool, offered: list[Tool]) -> tuple[str, str]:
        """(what to do, with what), which together leave one of the tools offered; either may be empty."""
        others = [one for one in offered if one is not tool]
        one_of_its_verb = all(one.verb != tool.verb for one in others)
        one_of_its_noun = all(one.noun != tool.noun for one in others)
        synonyms = words.VERBS.get(tool.verb)
        said = self._random.choice(synonyms.of(held_out=self._novelty.phrasing)) if synonyms else tool.verb
        thing = self._random.choice(("the ", "the ", "a ", "my ", "", "this ", "our ", "that ")) + tool.noun
        style = self._random.random()
        if one_of_its_noun and style < 0.12:
            return self._random.choice(words.OPENERS.of(held_out=self._novelty.phrasing)), thing
        if one_of_its_noun and style < 0.2:
            return self._random.choice(words.ENGLISH_VERBS.of(held_out=self._novelty.tools)), thing
        if one_of_its_noun and style < 0.25:
            return "", thing
        if one_of_its_verb and style < 0.33:
            return tool.verb, self._random.choice(("", "", "it", "that"))
        if synonyms is None and style < 0.45:
            return f"{tool.verb} {self._random.choice(('up', 'out', 'off', 'in', 'on', 'me'))}", thing
        return said, thing

    def _ordered(self, opening: tuple[str, str], parts: list[str]) -> str:
        doing, thing = opening
        style = self._random.random()
        if parts and style < 0.12:
            order = [parts[0] + ",", doing, thing, *parts[1:]]
        elif parts and style < 0.27:
            order = [doing, parts[0], thing, *parts[1:]]
        else:
            order = [doing, thing, *parts]
        return " ".join(part for part in order if part).replace(" : ", ": ")

    def _mention(self, argument: Argument, tool: Tool) -> tuple[str, Value, str]:
        """(words, value, phrase) of one argument."""
        name = _said(argument.name)
        if argument.kind == "switch":
            on = self._random.random() < 0.6
            said = self._random.choice(
                (name, f"make it {name}") if on else (f"not {name}", f"do not make it {name}")
            )
            return said, on, said
        said, value = self._value(argument)
        alone = sum(one.kind == argument.kind for one in tool.arguments) == 1
        named = not alone or self._random.random() < (0.35 if argument.usual else 0.6)
        held_out = self._novelty.phrasing
        frames = words.NAMED if named else words.CONNECTORS[argument.kind]
        return said, value, self._random.choice(frames.of(held_out=held_out)).format(v=said, k=name)

    def _value(self, argument: Argument) -> tuple[str, Value]:
        kind, new = argument.kind, self._novelty.tools
        if kind == "person":
            name = self._pick(words.FIRST_NAMES)
            return _same(name if self._random.random() < 0.7 else f"{name} {self._made_up().capitalize()}")
        if kind == "place":
            return _same(
                self._pick(words.PLACES) if self._random.random() < 0.6 else self._made_up().capitalize()
            )
        if kind == "day":
            return _same(self._random.choice(words.DAYS.of(held_out=new)))
        if kind == "time":
            return self._time()
        if kind == "number":
            return self._number(argument.json_type)
        if kind == "code":
            letters = "".join(
                self._random.choice("ABCDEFGHKLMNPRSTXZ") for _ in range(self._random.randint(0, 3))
            )
            return _same(letters + str(self._random.randint(100, 99999)))
        if kind == "choice":
            return _same(self._random.choice(argument.choices))
        return _same(self._filled(self._random.choice(words.TEXT_FRAMES.of(held_out=new))))

    def _time(self) -> tuple[str, Value]:
        hour, minute = self._random.randint(1, 12), self._random.choice((0, 0, 15, 30, 45, 5, 20))
        style = self._random.random()
        if style < 0.4:
            hour = self._random.randint(0, 23)
            return f"{hour}:{minute:02d}", f"{hour:02d}:{minute:02d}"
        evening = self._random.random() < 0.5
        full = hour % 12 + (12 if evening else 0)
        said = f"{hour}:{minute:02d}" if minute else str(hour)
        return f"{said} {'pm' if evening else 'am'}", f"{full:02d}:{minute:02d}"

    def _number(self, json_type: str) -> tuple[str, Value]:
        if json_type == "number" and self._random.random() < 0.5:
            value = round(self._random.uniform(1, 500), self._random.choice((1, 2)))
            return str(value), value
        if self._random.random() < 0.15:
            index = self._random.randrange(12)
            return words.NUMBER_WORDS[index], index + 1
        number = self._random.choice((
            self._random.randint(1, 20), self._random.randint(1, 99),
            self._random.randint(1, 9999), 10 * self._random.randint(1, 60),
        ))  # fmt: skip
        return str(number), number

    def _filled(self, frame: str) -> str:
        new = self._novelty.tools

        def word() -> str:
            return self._plain_word() if self._random.random() < 0.6 else (
                self._random.choice(words.COMMON.of(held_out=new))
            )  # fmt: skip

        return frame.format(
            a=word(), b=word(), c=word(), n=self._random.randint(2, 30), m=self._random.randint(2, 30),
            p=self._pick(words.FIRST_NAMES),
        )  # fmt: skip

    def _made_up(self) -> str:
        """A word that is none: it can only be copied."""
        syllables = ("".join((self._random.choice("bcdfghjklmnprstvwz"), self._random.choice("aeiou"),
                              self._random.choice(("", "", "n", "r", "s", "l", "t"))))
                     for _ in range(self._random.randint(2, 3)))  # fmt: skip
        return "".join(syllables)

    def _pick(self, names: words.Words) -> str:
        return self._random.choice(names.of(held_out=self._novelty.tools))

    def _verb(self) -> str:
        kind = self._random.random()
        if kind < 0.45:
            return self._random.choice(list(words.VERBS))
        return self._made_up() if kind > 0.9 else self._pick(words.ENGLISH_VERBS)

    def _noun(self) -> str:
        """What a tool is about, as it is said: a word or two, some of which mean nothing."""
        kind = self._random.random()
        if kind < 0.15:
            return _said(self._pick(words.NOUNS))
        if kind < 0.3:
            return f"{self._adjective()} {self._pick(words.ENGLISH_NOUNS)}"
        if kind < 0.4:
            return f"{self._pick(words.ENGLISH_NOUNS)} {self._pick(words.ENGLISH_NOUNS)}"
        return self._made_up() if kind > 0.8 else self._pick(words.ENGLISH_NOUNS)

    def _adjective(self) -> str:
        return self._pick(words.ENGLISH_ADJECTIVES)

    def _plain_word(self) -> str:
        kind = self._random.random()
        if kind < 0.2:
            return self._made_up()
        return self._pick(words.ENGLISH_NOUNS) if kind < 0.7 else self._adjective()

    def _spoken(self, said: str) -> str:
        text = self._random.choice(_POLITENESS).format(said)
        return text[0].upper() + text[1:] if self._random.random() < 0.3 else text

    def _schema(self, tool: Tool) -> Row:
        properties: Row = {}
        for one in tool.arguments:
            properties[one.name] = {
                "type": one.json_type,
                **({"enum": list(one.choices)} if one.choices else {}),
            }
        required = [one.name for one in tool.arguments if one.required]
        described = {"description": tool.described[0].upper() + tool.described[1:]} if tool.described else {}
        return {
            "name": tool.name,
            **described,
            "parameters": {"type": "object", "properties": properties, "required": required},
        }


def _said(name: str) -> str:
    return name.replace("_", " ")


def _says_enough(said: str) -> bool:
    """Whether no politeness goes around these words."""
    return said.endswith("?") or "please" in said or said.startswith(("I ", "we ", "my ", "the "))


def _same_number(number: int) -> tuple[str, Value]:
    return str(number), number


def _same(text: str) -> tuple[str, Value]:
    return text, text
