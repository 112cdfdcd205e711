"""The tools of the embedded sample, and what people say to use them.

`{name}` in a phrase is an argument of the tool: what is said for it comes from the pool of that argument.
Held-out phrases are never trained on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.sample_values import Value

Schema = dict[str, str | list[str]]
Row = dict[str, object]
"""A line of a data file."""


@dataclass(frozen=True)
class Phrase:
    """A way to ask, with the arguments it implies without saying them."""

    text: str
    implied: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool: its schema, the pool of each argument, and its phrases for training and held out."""

    name: str
    description: str
    parameters: Schema
    required: tuple[str, ...]
    pools: dict[str, str]
    phrases: tuple[Phrase, ...]
    held_out: tuple[Phrase, ...]


def _phrases(*texts: str | Phrase) -> tuple[Phrase, ...]:
    return tuple(text if isinstance(text, Phrase) else Phrase(text) for text in texts)


TOOLS: tuple[Tool, ...] = (
    Tool(
        "set_lights", "Set the lights of a room", {"room": "string", "brightness": "integer"}, ("room",),
        {"room": "room", "brightness": "percent"},
        _phrases(
            "set the {room} lights to {brightness}%", "dim the {room} to {brightness} percent",
            "put the lights in the {room} at {brightness}%", "brighten the {room} up to {brightness} percent",
            "turn on the {room} lights", "switch the light on in the {room}",
            Phrase("turn off the {room} lights", {"brightness": 0}),
            Phrase("switch everything off in the {room}", {"brightness": 0}),
        ),
        _phrases(
            "take the {room} lights to {brightness}%",
            Phrase("kill the lights in the {room}", {"brightness": 0}),
        ),
    ),
    Tool(
        "play_music", "Play music", {"query": "string", "volume": "integer"}, ("query",),
        {"query": "music", "volume": "volume"},
        _phrases(
            "play {query}", "put on some {query}", "play {query} at volume {volume}", "start {query}",
            "let me hear {query}", "put on {query}, volume {volume}", "queue up {query}",
        ),
        _phrases(
            "I want to hear {query}", "blast {query} at volume {volume}",
        ),
    ),
    Tool(
        "set_timer", "Start a countdown", {"minutes": "integer", "label": "string"}, ("minutes",),
        {"minutes": "minutes", "label": "label"},
        _phrases(
            "set a timer for {minutes} minutes", "start a {minutes} minute timer for {label}",
            "count down {minutes} minutes", "time {label} for {minutes} minutes",
            "give me {minutes} minutes for {label}", "set a {minutes} min timer called {label}",
        ),
        _phrases(
            "let a timer run for {minutes} minutes",
            "I need {minutes} minutes on the clock for {label}",
        ),
    ),
    Tool(
        "set_heating", "Set the temperature", {"temperature": "number", "unit": ["C", "F"]},
        ("temperature", "unit"), {"temperature": "celsius", "warmth": "fahrenheit"},
        _phrases(
            Phrase("set the heating to {temperature} degrees celsius", {"unit": "C"}),
            Phrase("make it {temperature} celsius in here", {"unit": "C"}),
            Phrase("turn the thermostat to {temperature} C", {"unit": "C"}),
            Phrase("set the heating to {warmth} fahrenheit", {"unit": "F"}),
            Phrase("keep the house at {warmth} F", {"unit": "F"}),
        ),
        _phrases(
            Phrase("warm the place to {temperature} celsius", {"unit": "C"}),
            Phrase("hold it at {warmth} fahrenheit", {"unit": "F"}),
        ),
    ),
    Tool(
        "send_message", "Text a contact", {"to": "string", "body": "string"}, ("to", "body"),
        {"to": "person", "body": "message"},
        _phrases(
            "text {to} that {body}", "tell {to} {body}", "send {to} a message: {body}",
            "message {to} saying {body}",
            "write to {to} that {body}", "let {to} know {body}",
        ),
        _phrases(
            "drop {to} a line: {body}", "pass on to {to} that {body}",
        ),
    ),
    Tool(
        "get_weather", "Weather forecast", {"city": "string", "day": "string"}, ("city",),
        {"city": "city", "day": "day"},
        _phrases(
            "what is the weather in {city} {day}?", "will it rain in {city} {day}?",
            "how warm is it in {city}?",
            "check the forecast for {city}", "do I need a coat in {city} {day}?",
            "show me the weather in {city} {day}",
        ),
        _phrases(
            "is it sunny in {city} {day}?", "look up the weather in {city}",
        ),
    ),
    Tool(
        "add_event", "Add to the calendar", {"title": "string", "day": "string", "time": "string"},
        ("title", "day"), {"title": "event", "day": "day", "time": "time"},
        _phrases(
            "put {title} in my calendar for {day} at {time}", "schedule {title} {day} at {time}",
            "add {title} on {day}", "book {title} into the calendar, {day} {time}", "plan {title} for {day}",
        ),
        _phrases(
            "pencil in {title} {day} at {time}", "block {day} for {title}",
        ),
    ),
    Tool(
        "add_item", "Add to a list", {"item": "string", "list": ["shopping", "todo", "packing"]},
        ("item", "list"), {"item": "grocery", "task": "chore", "gear": "gear"},
        _phrases(
            Phrase("add {item} to the shopping list", {"list": "shopping"}),
            Phrase("we need {item} from the shop", {"list": "shopping"}),
            Phrase("remind me to {task} some day", {"list": "todo"}),
            Phrase("put {task} on my todo list", {"list": "todo"}),
            Phrase("add {gear} to the packing list", {"list": "packing"}),
            Phrase("I must not forget to pack {gear}", {"list": "packing"}),
        ),
        _phrases(
            Phrase("we are out of {item}, note it for the shop", {"list": "shopping"}),
            Phrase("note that I have to {task}", {"list": "todo"}),
            Phrase("{gear} goes in the suitcase, note it", {"list": "packing"}),
        ),
    ),
    Tool(
        "convert_money", "Convert money", {"amount": "number", "source": "string", "target": "string"},
        ("amount", "source", "target"), {"amount": "amount", "source": "currency", "target": "currency"},
        _phrases(
            "convert {amount} {source} to {target}", "how much is {amount} {source} in {target}?",
            "change {amount} {source} into {target}", "what are {amount} {source} worth in {target}?",
        ),
        _phrases(
            "give me {amount} {source} as {target}", "{amount} {source} in {target}, please",
        ),
    ),
    Tool(
        "translate", "Translate text", {"text": "string", "language": "string"}, ("text", "language"),
        {"text": "saying", "language": "language"},
        _phrases(
            "translate '{text}' into {language}", "how do you say {text} in {language}?",
            "what is '{text}' in {language}?", "say {text} in {language}",
        ),
        _phrases(
            "put '{text}' into {language}", "I need {text} in {language}",
        ),
    ),
    Tool(
        "find_route", "Directions to a place",
        {"destination": "string", "mode": ["car", "bike", "walk", "bus"]},
        ("destination",), {"destination": "place"},
        _phrases(
            "how do I get to {destination}?", "find a way to {destination}", "take me to {destination}",
            Phrase("walk me to {destination}", {"mode": "walk"}),
            Phrase("which bus goes to {destination}?", {"mode": "bus"}),
            Phrase("find a bike route to {destination}", {"mode": "bike"}),
            Phrase("drive to {destination}", {"mode": "car"}),
        ),
        _phrases(
            "guide me to {destination}", Phrase("cycle over to {destination}", {"mode": "bike"}),
            Phrase("get me to {destination} on foot", {"mode": "walk"}),
        ),
    ),
    Tool(
        "lock_door", "Lock or unlock a door", {"door": "string", "locked": "boolean"}, ("door", "locked"),
        {"door": "door"},
        _phrases(
            Phrase("lock the {door}", {"locked": True}), Phrase("unlock the {door}", {"locked": False}),
            Phrase("make sure the {door} is locked", {"locked": True}),
            Phrase("open the {door}", {"locked": False}),
        ),
        _phrases(
            Phrase("bolt the {door}", {"locked": True}), Phrase("release the {door}", {"locked": False}),
        ),
    ),
    Tool(
        "book_table", "Book a restaurant", {"place": "string", "people": "integer", "time": "string"},
        ("place", "people"), {"place": "restaurant", "people": "people", "time": "time"},
        _phrases(
            "book a table for {people} at {place}", "reserve {place} for {people} people at {time}",
            "get us a table at {place}, {people} people, {time}", "we are {people}, book {place} for {time}",
        ),
        _phrases(
            "find {people} seats at {place} at {time}", "hold a table for {people} at {place}",
        ),
    ),
    Tool(
        "set_alarm", "Set an alarm", {"time": "string", "day": "string"}, ("time",),
        {"time": "time", "day": "day"},
        _phrases(
            "wake me at {time}", "set an alarm for {time} {day}", "alarm at {time}",
            "get me up at {time} {day}",
            "ring at {time} {day}",
        ),
        _phrases(
            "I have to be up by {time} {day}", "make the alarm go off at {time}",
        ),
    ),
    Tool(
        "track_parcel", "Where a parcel is", {"code": "string"}, ("code",), {"code": "parcel"},
        _phrases(
            "where is my parcel {code}?", "track {code}", "has {code} been delivered?",
            "check on package {code}",
        ),
        _phrases(
            "any news of delivery {code}?", "look up parcel {code}",
        ),
    ),
    Tool(
        "find_recipe", "Search recipes", {"dish": "string", "minutes": "integer"}, ("dish",),
        {"dish": "dish", "minutes": "minutes"},
        _phrases(
            "find a recipe for {dish}", "how do I make {dish}?", "show me {dish} in under {minutes} minutes",
            "I want to cook {dish}", "look for a {minutes} minute {dish} recipe",
        ),
        _phrases(
            "what goes into {dish}?", "teach me to make {dish} within {minutes} minutes",
        ),
    ),
)  # fmt: skip

SAME_ARGUMENT: dict[str, str] = {"warmth": "temperature", "task": "item", "gear": "item"}
"""Names in phrases that are another pool of the same argument."""
