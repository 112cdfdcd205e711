"""The words that the base model's training examples are put together from.

Every list ends in words that are held out: they are in no training example, so that tools and phrasings made
of them measure what the model does with words it never had to use.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from wonderwords import RandomWord, filter_profanity


@dataclass(frozen=True)
class Words:
    """A list with a training part and a held-out part."""

    training: tuple[str, ...]
    held_out: tuple[str, ...]

    def of(self, *, held_out: bool) -> tuple[str, ...]:
        """One of the parts."""
        return self.held_out if held_out else self.training


def lexicon(category: str) -> Words:
    """The English words of one category ("noun", "verb", "adjective"), one in ten of them held out."""
    known = [
        word
        for word in RandomWord().filter(include_categories=[category])
        if word.isascii() and word.isalpha() and word.islower() and 3 <= len(word) <= 11
    ]
    proper = sorted(set(filter_profanity(known)))
    return Words(
        tuple(word for word in proper if zlib.crc32(word.encode()) % 10),
        tuple(word for word in proper if not zlib.crc32(word.encode()) % 10),
    )


def _words(training: str, held_out: str = "") -> Words:
    return Words(tuple(training.split()), tuple((held_out or training).split()))


VERBS: dict[str, Words] = {
    "get": Words(("get", "fetch", "show me", "look up", "give me", "read me"), ("pull up", "let me see")),
    "find": Words(("find", "search for", "look for", "where is"), ("locate", "hunt down")),
    "check": Words(("check", "check on", "what is the state of", "how is"), ("inspect", "any news of")),
    "list": Words(("list", "show all of", "what is in"), ("go through",)),
    "set": Words(("set", "change", "adjust", "put"), ("switch", "take")),
    "update": Words(("update", "edit", "correct"), ("revise",)),
    "add": Words(("add", "put in", "note", "enter"), ("include", "jot down")),
    "create": Words(("create", "make", "make a new", "set up"), ("draw up", "prepare")),
    "remove": Words(("remove", "delete", "take out", "clear"), ("get rid of", "drop")),
    "cancel": Words(("cancel", "call off", "undo"), ("scrap",)),
    "start": Words(("start", "begin", "launch", "run"), ("kick off", "fire up")),
    "stop": Words(("stop", "end", "halt", "turn off"), ("shut down", "finish")),
    "send": Words(("send", "pass on", "mail"), ("forward", "deliver")),
    "open": Words(("open", "open up", "bring up"), ("unfold",)),
    "close": Words(("close", "shut"), ("seal",)),
    "book": Words(("book", "reserve", "get me"), ("arrange", "secure")),
    "order": Words(("order", "buy", "ask for"), ("purchase",)),
    "rate": Words(("rate", "review", "score"), ("judge",)),
    "share": Words(("share", "post", "publish"), ("hand out",)),
    "move": Words(("move", "shift", "bring"), ("transfer",)),
    "count": Words(("count", "how many are in", "add up"), ("tally",)),
    "measure": Words(("measure", "weigh", "how big is"), ("gauge",)),
    "repeat": Words(("repeat", "do again", "replay"), ("redo",)),
    "save": Words(("save", "keep", "store"), ("archive",)),
}
"""By the first part of a tool's name, how people say it."""

NOUNS = _words(
    "invoice ticket ride flight hotel room shelf garden pump camera printer photo album song playlist "
    "channel podcast movie film book chapter page note memo diary journal letter email draft reply "
    "contact group team meeting appointment call conference lecture lesson course exam grade student "
    "teacher class project task board card branch commit build server cluster node job queue backup disk "
    "folder file document report chart table sheet form survey poll vote budget expense payment refund "
    "loan account balance transfer salary tax stock share order basket coupon product price parcel_box "
    "shipment truck route_plan stop_point station train bus ferry bike car engine tyre battery charger "
    "lamp heater fan window curtain oven fridge dishwasher washer vacuum robot drone sensor valve tank "
    "pool boiler plant seed crop field barn cow horse dog cat vet clinic doctor nurse patient dose pill "
    "vaccine scan workout run_plan race match goal player coach league score_sheet menu meal snack drink "
    "coffee tea_cup wine cake bread_roll pizza soup salad wardrobe shirt dress shoe hat ring watch gift "
    "card_pack toy game puzzle level_map quest hero weapon",
    "alarm_bell anchor beacon bridge canoe castle comet compass dam elevator fence fountain glacier "
    "hammer helmet island kite ladder lantern lighthouse magnet mirror needlework orchard paddle quilt "
    "reef sail tractor tunnel umbrella violin wagon whistle windmill",
)
"""What tools are about; an underscore is said as a space."""

ENGLISH_NOUNS, ENGLISH_VERBS, ENGLISH_ADJECTIVES = lexicon("noun"), lexicon("verb"), lexicon("adjective")
"""Far more words than a small model can learn one by one: what is made of them has to be read."""

OPENERS = Words(
    (
        "I need", "how about", "let me have", "do", "go for", "I want", "can I have", "deal with",
        "what about", "handle", "let us do", "time for", "take care of", "we need", "it is about", "use",
        "go ahead with",
        "I would like", "see to", "please do",
    ),
    ("bring me", "I am after", "sort out", "is there"),
)  # fmt: skip
"""Ways to ask that say nothing of what is to be done: the thing that follows has to tell."""

KINDS: dict[str, Words] = {
    "person": _words(
        "name recipient guest owner author sender driver user customer client friend colleague "
        "patient_name assignee winner",
        "visitor trustee neighbour sponsor",
    ),
    "place": _words(
        "city place location address country region district street venue airport origin",
        "harbour_name province borough",
    ),
    "day": _words("day date due_date start_date delivery_day birthday", "deadline expiry_day"),
    "time": _words("time start_time end_time hour departure arrival", "curfew opening_time"),
    "number": _words(
        "amount count number level size age price percent minutes hours days quantity limit distance "
        "weight height speed volume temperature seats pages rating budget_limit",
        "depth width tally_limit stock_level voltage",
    ),
    "text": _words(
        "title text message subject body comment description query topic label reason summary question "
        "caption keyword content phrase",
        "headline remark slogan inscription",
    ),
    "code": _words(
        "id code reference serial order_number account_id tracking_code version key_code pin",
        "barcode passphrase plate",
    ),
    "choice": _words(
        "mode color unit priority status category format style kind type language method",
        "finish shade tier material",
    ),
    "switch": _words(
        "enabled urgent private locked shared visible muted repeat_daily paid public",
        "sealed hidden archived",
    ),
}
"""Names of arguments by what their values are; a few have no value of their own but a yes or no."""

CHOICES: dict[str, Words] = {
    "mode": _words("fast slow eco silent auto manual"),
    "color": _words("red green blue yellow black white orange purple"),
    "unit": _words("km miles kg pounds litres metres"),
    "priority": _words("low normal high"),
    "status": _words("todo doing done blocked"),
    "category": _words("work home travel food health"),
    "format": _words("pdf csv html json png"),
    "style": _words("plain formal casual modern"),
    "kind": _words("small medium large"),
    "type": _words("daily weekly monthly yearly"),
    "language": _words("english french german spanish"),
    "method": _words("card cash cheque voucher"),
    "finish": _words("matt gloss satin"),
    "shade": _words("pale dark bright"),
    "tier": _words("bronze silver gold"),
    "material": _words("oak steel glass paper"),
}

FIRST_NAMES = _words(
    "Ada Ben Carla Dmitri Elena Farid Greta Hassan Ines Jamal Karin Leo Mina Nils Olga Paul Quinn Rosa "
    "Sven Tara Uma Viktor Wendy Xin Yusuf Zelda Anton Bella Cem Dora Emil Fatima Gino Hana Igor Julia",
    "Abel Brigit Cosmo Delia Esra Flynn Gwen Hugo Iris Jorge",
)
PLACES = _words(
    "Berlin Madrid Rome Vienna Prague Dublin Athens Warsaw Tokyo Delhi Lima Bogota Accra Tunis Dakar "
    "Denver Boston Dallas Miami Quebec Perth Sydney Oxford Leeds Lyon Nice Bergen Malmo Ghent Basel",
    "Tallinn Porto Zagreb Osaka Jaipur Quito Windhoek Hobart",
)
COMMON = _words(
    "old new blue red green big small quick slow warm cold late early first last second best good long "
    "short open closed free busy quiet bright dark sweet fresh dry wet heavy light simple secret local "
    "public river mountain forest ocean street market kitchen office school bridge window door garden "
    "summer winter morning evening birthday holiday weekend party dinner lunch breakfast story music "
    "picture paper letter plan idea question answer problem team family friend brother sister mother "
    "father child teacher doctor apple banana lemon cherry honey butter cheese rice pasta chicken fish "
    "water coffee milk juice bread",
    "amber velvet copper thunder meadow harvest marble cinnamon lantern feather saddle pepper walnut ginger",
)
TEXT_FRAMES = Words(
    (
        "{a} {b}", "the {a} {b}", "{a}", "{a} {b} {c}", "my {a} {b}", "call me about the {a}", "{a} and {b}",
        "where is the {a}", "we need more {a}", "bring the {a} {b}", "thanks for the {a}", "the {a} is {b}",
        "{n} {a}", "{p} and the {a}", "see you at the {a} {b}", "{a} for {p}",
    ),
    ("do not forget the {a}", "{p} has the {a}", "one more {a} {b}", "no {a} without {b}"),
)  # fmt: skip

DAYS = _words("today tomorrow Monday Tuesday Wednesday Friday Saturday", "Thursday Sunday")
NUMBER_WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]

CONNECTORS: dict[str, Words] = {
    "person": Words(
        ("for {v}", "to {v}", "with {v}", "from {v}", "of {v}", "by {v}", "{v}", "and tell {v}", "at {v}",
         "as {v}", "and {v}", "on {v}", "via {v}"),
        ("on behalf of {v}", "together with {v}"),
    ),
    "place": Words(
        ("in {v}", "to {v}", "at {v}", "near {v}", "from {v}", "{v}", "over in {v}", "into {v}", "by {v}",
         "inside {v}", "for {v}", "of {v}", "out of {v}"),
        ("around {v}", "close to {v}"),
    ),
    "day": Words(
        ("on {v}", "for {v}", "by {v}", "{v}", "next {v}", "this {v}", "until {v}", "from {v}", "before {v}",
         "starting {v}", "of {v}"),
        ("come {v}", "not later than {v}"),
    ),
    "time": Words(
        ("at {v}", "by {v}", "for {v}", "{v}", "from {v}", "before {v}", "until {v}", "after {v}",
         "sharp at {v}"),
        ("around {v}", "as of {v}"),
    ),
    "number": Words(
        ("to {v}", "of {v}", "for {v} {k}", "{v} {k}", "with {v} {k}", "up to {v}", "at {v} {k}", "at {v}",
         "to {v}%", "at {v} percent", "{v}%", "by {v}", "{v}", "in {v} {k}", "from {v}", "{v} times",
         "down to {v}", "over {v} {k}", "for {v} minutes", "{v} degrees", "under {v}", "a {v} {k} one",
         "{k} {v}"),
        ("worth {v} {k}", "as much as {v}"),
    ),
    "text": Words(
        ("called {v}", "saying {v}", "about {v}", "'{v}'", ": {v}", "that says {v}", "named {v}",
         "with '{v}'",
         "that {v}", "for {v}", "{v}", "titled {v}", "on {v}", "with {v}", "like {v}", "of {v}", "to {v}",
         "\"{v}\"", "namely {v}", "labelled {v}", "and say {v}", "- {v}"),
        ("which reads {v}", "under the words {v}"),
    ),
    "code": Words(
        ("{v}", "number {v}", "with code {v}", "for {v}", "#{v}", "no. {v}", "of {v}", "under {v}", "by {v}",
         "from {v}", "with {v}", "ref {v}"),
        ("marked {v}", "listed as {v}"),
    ),
    "choice": Words(
        ("in {v}", "as {v}", "{v}", "make it {v}", "with {v}", "by {v}", "the {v} one", "{v} please",
         "on {v}",
         "to {v}", "for {v}", "using {v}", "rather {v}"),
        ("and I want {v}", "going for {v}"),
    ),
}  # fmt: skip
NAMED = Words(
    (
        "with {k} {v}", "{k} {v}", "the {k} is {v}", "{k}: {v}", "and {k} {v}", "with the {k} {v}",
        "use {v} as {k}", "{v} as the {k}", "set {k} to {v}", "{k} = {v}", "{k} of {v}", "its {k} is {v}",
        "make the {k} {v}", "({k} {v})", "{v} for {k}", "as {k} take {v}", "let {k} be {v}",
        "{k} should be {v}",
        "whose {k} is {v}", "at {k} {v}", "give it {k} {v}", "having {k} {v}", "go with {v} as {k}",
        "{v} is the {k}", "the {k} being {v}", "{k} is {v}", "and for {k} {v}", "by {k} {v}", "in {k} {v}",
        "of {k} {v}", "on {k} {v}", "for {k} {v}", "to {k} {v}", "from {k} {v}",
    ),
    ("where {k} should be {v}", "take {v} for the {k}", "my {k} would be {v}"),
)  # fmt: skip
"""Ways to say a value: by what kind it is, or by the name of its argument."""

SMALL_TALK = Words(
    (
        "tell me a story", "who are you?", "what is the meaning of life?", "I am bored", "thank you so much",
        "good morning", "hello", "what is {n} times {m}?", "who wrote {a} {b}?", "why is the {a} {b}?",
        "do you like {a}?", "how do {a}s sleep?", "sing about the {a}", "is {a} better than {b}?",
        "you are {a}",
        "write a poem about {a}", "what do you think of {p}?", "explain {a} {b} to me", "never mind",
        "oh well",
        "how far is the moon?", "who won the {a} game?", "I feel {a}", "what rhymes with {a}?",
        "that was {a}",
        "how old is {p}?", "are you a {a}?", "what should I call my {a}?", "tell me something {a}", "haha",
    ),
    (
        "what a {a} day", "can {a}s dream?", "who invented the {a}?", "I miss {p}", "good night",
        "say something {a}", "why do people love {a}?", "what comes after {n}?",
    ),
)  # fmt: skip

ROOMS = ("lounge", "loft", "workshop", "terrace", "porch", "pantry", "gym", "library", "den", "corridor",
         "entrance", "studio", "playroom", "balcony", "greenhouse", "guest room", "back yard", "front garden",
         "wine cellar", "roof terrace", "east wing")  # fmt: skip
PEOPLE = ("my sister", "my mother", "Dad", "my boss", "the doctor", "Dr. Lund", "Mrs. Osei", "my friend",
          "the neighbours", "my wife", "my uncle", "the babysitter", "Aunt Vera")  # fmt: skip
SPOKEN_TIMES: tuple[tuple[str, str], ...] = (
    ("noon", "12:00"), ("midnight", "00:00"), ("half past one", "13:30"), ("half past two", "14:30"),
    ("half past three", "15:30"), ("half past four", "16:30"), ("half past six", "18:30"),
    ("seven in the morning", "07:00"), ("nine in the morning", "09:00"), ("eight in the evening", "20:00"),
    ("ten in the evening", "22:00"), ("three in the afternoon", "15:00"), ("quarter past two", "14:15"),
)  # fmt: skip
"""What is said for a time in other ways than in figures, and the time that is meant."""
SENTENCES = (
    "the {a} is broken", "we are out of {a}", "I found the {a}", "{p} called", "the {a} starts at {n}",
    "I will be {n} minutes late", "the {a} and the {b} are ready", "bring {a} and {b}", "I like the {a}",
    "do not touch the {a}", "my {a} needs a new {b}", "the meeting is at {n}", "she wants the {a}",
    "we meet at the {a}", "it is time for the {a}", "I left my {a} at the {b}", "your {a} is here",
    "{p} needs the {a}", "nobody fed the {a}", "the {a} costs {n}", "I am on my way", "all is well",
)  # fmt: skip
