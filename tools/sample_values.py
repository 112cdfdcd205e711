"""What people say in the embedded sample: values for each kind of argument, and talk that needs no tool."""

from __future__ import annotations

from dataclasses import dataclass

Value = str | int | float | bool
Said = tuple[str, Value]


@dataclass(frozen=True)
class Pool:
    """What can be said for an argument and what it means. Held-out values are new but for currencies."""

    training: tuple[Said, ...]
    held_out: tuple[Said, ...]


def _as_said(*values: Value) -> tuple[Said, ...]:
    return tuple((str(value), value) for value in values)


def _pool(training: tuple[Value, ...] | range, held_out: tuple[Value, ...] | range) -> Pool:
    return Pool(_as_said(*training), _as_said(*held_out))


POOLS: dict[str, Pool] = {
    "room": _pool(
        ("kitchen", "bedroom", "living room", "hallway", "bathroom", "office", "garage", "nursery"),
        ("attic", "study", "dining room", "cellar"),
    ),
    "percent": _pool(range(10, 100, 5), (12, 33, 48, 77, 92)),
    "music": _pool(
        ("Nina Simone", "techno", "Bach cello suites", "the new Björk album", "lo-fi beats", "Miles Davis",
         "Fela Kuti", "90s hip hop", "rain sounds", "Édith Piaf", "bossa nova", "Daft Punk"),
        ("Aretha Franklin", "ambient piano", "Sigur Rós", "flamenco guitar", "The Clash"),
    ),
    "volume": _pool((2, 3, 4, 5, 6, 8, 10), (1, 7, 9)),
    "minutes": _pool((3, 4, 5, 8, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 90), (6, 14, 22, 55)),
    "label": _pool(
        ("pasta", "laundry", "tea", "bread", "the eggs", "stretching", "a nap", "parking"),
        ("rice", "the oven", "meditation"),
    ),
    "celsius": _pool((17, 18, 18.5, 19, 19.5, 20, 20.5, 21, 21.5, 22, 23, 24), (16, 17.5, 22.5)),
    "fahrenheit": _pool((62, 64, 66, 68, 70, 72, 74, 75), (63, 69, 71)),
    "person": _pool(
        ("Maria", "Tom", "Zoë", "my brother", "Dr. Patel", "Aisha", "Grandma", "Luca", "Mei", "the plumber",
         "Priya", "Jonas"),
        ("Omar", "Chloé", "my landlord", "Ingrid", "Kenji"),
    ),
    "message": _pool(
        ("I am running late", "dinner is ready", "happy birthday", "call me back", "the train is delayed",
         "thanks for yesterday", "see you at the station", "don't forget the keys", "I got the job"),
        ("the door code changed", "I left my phone at home", "good luck today", "we are out of milk"),
    ),
    "city": _pool(
        ("Paris", "Lagos", "München", "Toronto", "São Paulo", "Oslo", "Seoul", "Cairo", "Austin", "Kraków"),
        ("Lisbon", "Nairobi", "Zürich", "Hanoi"),
    ),
    "day": _pool(
        ("today", "tomorrow", "Monday", "Wednesday", "Friday", "Saturday"), ("Tuesday", "Thursday", "Sunday")
    ),
    "event": _pool(
        ("dentist", "team lunch", "piano lesson", "rent review", "book club", "yoga", "car service"),
        ("eye test", "parents' evening", "choir practice"),
    ),
    "time": Pool(
        (("7:30", "07:30"), ("8 am", "08:00"), ("9:15", "09:15"), ("noon", "12:00"), ("2 pm", "14:00"),
         ("half past three", "15:30"), ("6 pm", "18:00"), ("19:45", "19:45"), ("eight in the evening",
         "20:00")),
        (("6:45", "06:45"), ("11 am", "11:00"), ("half past five", "17:30"), ("9 pm", "21:00")),
    ),
    "grocery": _pool(
        ("oat milk", "two lemons", "bread", "coffee beans", "dish soap", "rice", "a melon", "jalapeños"),
        ("basil", "olive oil", "six eggs"),
    ),
    "chore": _pool(
        ("water the plants", "renew the passport", "fix the bike", "call the bank", "clean the gutters"),
        ("return the books", "book a haircut"),
    ),
    "gear": _pool(("socks", "the charger", "a raincoat", "sunscreen", "the tent"), ("earplugs", "a torch")),
    "amount": _pool((5, 12.5, 20, 50, 75, 99.9, 120, 250, 300, 1000), (8, 64, 45.5, 480)),
    "currency": Pool(
        (("euros", "EUR"), ("dollars", "USD"), ("pounds", "GBP"), ("yen", "JPY"), ("Swiss francs", "CHF")),
        (("euros", "EUR"), ("dollars", "USD"), ("rupees", "INR"), ("pounds", "GBP")),
    ),
    "saying": _pool(
        ("where is the station", "good morning", "the bill please", "I am allergic to nuts", "how much is it",
         "thank you very much", "two tickets please"),
        ("is this seat free", "see you tomorrow", "I would like some water"),
    ),
    "language": _pool(("French", "Spanish", "Japanese", "German", "Arabic", "Polish"), ("Italian",
        "Turkish")),
    "place": _pool(
        ("the airport", "the zoo", "Central Park", "city hall", "the nearest pharmacy", "the harbour",
         "Anna's house", "the museum"),
        ("the stadium", "the old market", "the hospital"),
    ),
    "restaurant": _pool(("Chez Léon", "Sakura", "The Oak", "Trattoria Roma", "El Patio"), ("Blue Door",
        "Saffron")),
    "people": _pool(range(2, 9), (10, 12)),
    "door": _pool(("front door", "back door", "garage door", "garden gate", "patio door"), ("side door",
        "shed")),
    "parcel": _pool(
        ("ZX4471", "PK90218", "LM33507", "QT8842", "RR10593", "AB5521", "KD77310"), ("WV6093", "HN20415")
    ),
    "dish": _pool(
        ("lentil soup", "pancakes", "mushroom risotto", "chicken curry", "pad thai", "crème brûlée", "chili"),
        ("shakshuka", "apple pie", "ramen"),
    ),
}  # fmt: skip

OFF_TOPIC = (
    "tell me a joke", "who wrote Hamlet?", "what do you think about love?", "how old is the universe?",
    "write a poem about autumn", "are you a person?", "what is the square root of 81?",
    "I feel a bit sad today",
    "who won the match last night?", "explain how rainbows form", "thanks, that was helpful",
    "sing something",
    "what should I name my cat?", "is a tomato a fruit?", "hello there", "which film should I watch?",
    "summarise the French revolution", "why is the sky blue?", "do fish sleep?", "never mind",
)  # fmt: skip
OFF_TOPIC_HELD_OUT = (
    "how tall is Mount Everest?", "tell me something interesting", "what is your favourite colour?",
    "who invented the telephone?", "good night", "can pigs swim?",
)  # fmt: skip
SYSTEMS = ("locale: en_GB", "locale: en_US", "the user is driving", "units: metric")
