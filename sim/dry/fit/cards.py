"""Devices that a command is tried on, and what they cost."""
import os
import re

from values import Wrong

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(text):
    """A size as gpumem's options and device files have it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.I)
    if not found:
        raise Wrong(f"'{text}' is no size such as 24G")
    return int(float(found[1]) * UNITS[found[2].upper()])


def plain(name):
    return re.sub(r"[ _-]", "", name).lower()


# Slices of a device by Multi-Instance GPU: multiprocessors and memory in eighths, as NVIDIA's user guide has them. A driver
# keeps some of each slice's memory back: 256 to 448 MiB of an A100's, so 512 MiB are assumed.
SLICES = {"1g": (1, 1), "2g": (2, 2), "3g": (3, 4), "4g": (4, 4), "7g": (8, 8)}
SLICED = {"a100-40": 40, "a100-80": 80, "h100": 80, "h200": 141, "b200": 180}
KEPT_BACK = 512 << 20


class Card:
    """A device, and how many of it the program sees."""

    def __init__(self, stem, path, count=1):
        self.stem, self.path, self.count, self.price = stem, path, count, None
        self.facts = facts = {}
        try:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    key, equals, value = line.partition("=")
                    if equals and not line.lstrip().startswith("#"):
                        facts[key.strip()] = value.strip()
            self.name, self.memory = facts["name"], bytes_of(facts["memory"])
            self.context = bytes_of(facts.get("context", "0"))
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise Wrong(f"{path}: {error}") from None
        self.names = {plain(stem), plain(self.name), *map(plain, facts.get("also", "").split())}
        # Devices that differ in memory alone run the same code: what one needs, the other does.
        self.architecture = facts.get("cc"), facts.get("sms"), facts.get("kernels"), count

    def slices(self, folder):
        """The slices of a device, as files in a folder of ours."""
        for kind, (processors, eighths) in SLICES.items():
            name = f"{kind}.{(SLICED[self.stem] * eighths + 4) // 8}gb"
            facts = dict(self.facts, name=f"{self.name} MIG {name}", also="",
                         sms=str(int(self.facts["sms"]) * processors // 8),
                         memory=f"{(self.memory * eighths // 8 - KEPT_BACK) >> 20}MiB")
            path = os.path.join(folder, f"{self.stem}-{name}.device")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{key} = {value}\n" for key, value in facts.items())
            yield Card(f"{self.stem}-{name}", path)

    def times(self, count):
        return Card(self.stem, self.path, count)

    def key(self):
        return self.stem if self.count == 1 else f"{self.stem}x{self.count}"

    def title(self):
        """As a sentence names it."""
        name = re.sub(r"^NVIDIA (GeForce )?", "", self.name)
        if self.count > 1:
            return f"{self.count} {name}"
        is_word = name[1:2].islower() # else it is spelt: an RTX, an H100
        return f"{'an' if name[0] in ('AEIOU' if is_word else 'AEFHILMNORSX') else 'a'} {name}"


class Cards:
    """All devices of a folder, and slices of them, whose files are made in the folder `scratch`."""

    def __init__(self, folder, scratch):
        self.known = []
        for name in sorted(os.listdir(folder)):
            stem, suffix = os.path.splitext(name)
            if suffix == ".device":
                self.known.append(Card(stem, os.path.join(folder, name)))
        self.slices = [part for card in self.known if card.stem in SLICED for part in card.slices(scratch)]

    def find(self, name):
        if "/" in name or name.endswith(".device"):
            return Card(os.path.splitext(os.path.basename(name))[0], os.path.abspath(name))
        for card in self.known + self.slices:
            if plain(name) in card.names:
                return card
        raise Wrong(f"'{name}' is none of {' '.join(card.stem for card in self.known)}, nor a file")

    def listed(self, text, counts):
        """The cards of --devices: `all`, `mig` (slices), names; each also NAMExCOUNT. `counts` are tried of each that
        has none of its own."""
        cards = []
        for part in text.split(","):
            found = re.fullmatch(r"(.+?)x(\d+)", part)
            own = found and plain(part) not in {name for card in self.known for name in card.names}
            if part in ("all", "mig"):
                names = self.known if part == "all" else self.slices
            else:
                names = [self.find(found[1] if own else part)]
            for card in names:
                for count in [int(found[2])] if own else counts:
                    if not 1 <= count <= 16:
                        raise Wrong(f"--devices: '{part}': 1 to 16 of a kind")
                    cards.append(card.times(count))
        return list({card.key(): card for card in cards}.values())

    def read_prices(self, path, cards):
        """Lines NAME[xCOUNT] PRICE, in any unit; a comma or blanks between; # begins a comment."""
        prices = {}
        try:
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    text = line.split("#")[0].strip()
                    if not text:
                        continue
                    found = re.fullmatch(r"(.+?)[\s,;=]+(\d+(?:\.\d+)?)", text)
                    if not found:
                        raise Wrong(f"{path}:{number}: not NAME PRICE")
                    prices[plain(found[1])] = float(found[2])
        except (OSError, UnicodeDecodeError) as error:
            raise Wrong(f"--prices: {path}: {error}") from None
        for card in cards:
            whole = next((prices[f"{name}x{card.count}"] for name in card.names if f"{name}x{card.count}" in prices),
                         None)
            each = next((prices[name] for name in card.names if name in prices), None)
            card.price = whole if whole is not None else each and each * card.count
