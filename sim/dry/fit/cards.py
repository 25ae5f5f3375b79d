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


class Card:
    """A device, and how many of it the program sees."""

    def __init__(self, stem, path, count=1):
        self.stem, self.path, self.count, self.price = stem, path, count, None
        facts = {}
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
    def __init__(self, folder):
        self.known = []
        for name in sorted(os.listdir(folder)):
            stem, suffix = os.path.splitext(name)
            if suffix == ".device":
                self.known.append(Card(stem, os.path.join(folder, name)))

    def find(self, name):
        if "/" in name or name.endswith(".device"):
            return Card(os.path.splitext(os.path.basename(name))[0], os.path.abspath(name))
        for card in self.known:
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
                names = [card for card in self.known if ("." in card.stem) == (part == "mig")]
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
