"""Worked word problems from a seeded generator: small arithmetic that a tiny model can learn to
finish.

Every problem is text of the form `Question: … Answer: … The answer is N.`; the answer is computed,
never written by hand.
"""

from collections.abc import Iterator
from random import Random

NAMES = (
    "Ada Ben Carla Dan Eva Femi Gita Hugo Ines Jack Kofi Lena Maya Nils Olga Pablo Quinn Rosa Sami"
    " Tara Uma Vera Will Xiu Yara Zoe"
).split()
THINGS = (
    "apples books coins marbles pencils stamps cards shells"
    " eggs ribbons tickets stickers bottles cookies flowers"
).split()
PLACES = "a shop, a school, a farm, a library, a market, a museum, a bakery, a garage".split(", ")


def problem(random: Random) -> tuple[str, str]:
    """One question and its worked answer; both are plain text, the question ends with `Answer:`."""
    question, steps, answer = random.choice((_change, _shares, _earnings, _journey, _boxes, _ages))(
        random
    )
    return f"Question: {question}\nAnswer:", f" {steps} The answer is {answer}.\n"


def problems(seed: int) -> Iterator[tuple[str, str]]:
    """An endless stream of (question, answer), the same for the same seed."""
    random = Random(seed)
    while True:
        yield problem(random)


def _change(random: Random) -> tuple[str, str, int]:
    name, other = random.sample(NAMES, 2)
    thing = random.choice(THINGS)
    had, given = random.randint(12, 90), random.randint(2, 11)
    bought = random.randint(2, 40)
    left = had - given
    total = left + bought
    question = (
        f"{name} has {had} {thing}. {name} gives {given} {thing} to {other} and then buys {bought}"
        f" more. How many {thing} does {name} have now?"
    )
    steps = (
        f"{name} starts with {had} {thing}. After giving {given} to {other}, {name} has {had} -"
        f" {given} = {left} {thing}."
        f" After buying {bought} more, {name} has {left} + {bought} = {total} {thing}."
    )
    return question, steps, total


def _shares(random: Random) -> tuple[str, str, int]:
    name, thing = random.choice(NAMES), random.choice(THINGS)
    friends, each, extra = random.randint(2, 9), random.randint(2, 12), random.randint(1, 9)
    total = friends * each
    question = (
        f"{name} shares {total} {thing} equally among {friends} friends. Each friend already had"
        f" {extra} {thing}."
        f" How many {thing} does each friend have now?"
    )
    steps = (
        f"Each friend gets {total} / {friends} = {each} {thing}."
        f" With the {extra} from before, each friend has {each} + {extra} = {each + extra} {thing}."
    )
    return question, steps, each + extra


def _earnings(random: Random) -> tuple[str, str, int]:
    name, place = random.choice(NAMES), random.choice(PLACES)
    hours, rate, days, spent = (
        random.randint(2, 9),
        random.randint(5, 20),
        random.randint(2, 6),
        random.randint(3, 19),
    )
    daily = hours * rate
    total = daily * days
    question = (
        f"{name} works at {place} for {hours} hours a day and earns {rate} dollars an hour."
        f" After {days} days {name} spends {spent} dollars. How many dollars are left?"
    )
    steps = (
        f"{name} earns {hours} * {rate} = {daily} dollars a day. In {days} days that is {daily} *"
        f" {days} = {total} dollars."
        f" After spending {spent} dollars, {total} - {spent} = {total - spent} dollars are left."
    )
    return question, steps, total - spent


def _journey(random: Random) -> tuple[str, str, int]:
    name, vehicle = random.choice(NAMES), random.choice(("bicycle", "train", "bus", "car", "boat"))
    first, second, hours, more = (
        random.randint(8, 60),
        random.randint(8, 60),
        random.randint(2, 6),
        random.randint(2, 6),
    )
    one, two = first * hours, second * more
    question = (
        f"{name} travels by {vehicle} at {first} km per hour for {hours} hours,"
        f" then at {second} km per hour for {more} hours. How many kilometres does {name} travel?"
    )
    steps = (
        f"In the first part {name} travels {first} * {hours} = {one} km. In the second part {name}"
        f" travels {second} * {more} = {two} km."
        f" Together that is {one} + {two} = {one + two} km."
    )
    return question, steps, one + two


def _boxes(random: Random) -> tuple[str, str, int]:
    place, thing = random.choice(PLACES), random.choice(THINGS)
    boxes, each, broken = random.randint(3, 12), random.randint(4, 24), random.randint(1, 11)
    total = boxes * each
    question = (
        f"There are {boxes} boxes in {place}. Each box holds {each} {thing}. {broken} of the"
        f" {thing} are broken. How many {thing} are not broken?"
    )
    steps = (
        f"The boxes hold {boxes} * {each} = {total} {thing}. Without the broken ones there are"
        f" {total} - {broken} = {total - broken} {thing}."
    )
    return question, steps, total - broken


def _ages(random: Random) -> tuple[str, str, int]:
    name, other = random.sample(NAMES, 2)
    age, times, years = random.randint(3, 15), random.randint(2, 4), random.randint(2, 12)
    older = age * times
    question = (
        f"{name} is {age} years old. {other} is {times} times as old as {name}."
        f" How old will {other} be in {years} years?"
    )
    steps = (
        f"{other} is {times} * {age} = {older} years old now. In {years} years {other} will be"
        f" {older} + {years} = {older + years} years old."
    )
    return question, steps, older + years
