"""Whatever stands in a file that somebody else may have written: a command is done, or says in one line what is wrong.

For files of every format, from any bytes to values that only nearly fit. `benchmarks/faults.py` tries many more.
"""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.every_file import FILES, EveryFile, OutsideFile
from tests.support.json_values import quick
from tests.support.spoiling import spoil

dice_of_hypothesis = st.randoms(use_true_random=False)
several = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> EveryFile:
    return EveryFile(tmp_path_factory.mktemp("every-file") / "library")


def check(library: EveryFile, file: OutsideFile, dice: random.Random) -> None:
    for ran in library.commands_on(file, lambda content: spoil(content, dice), dice.randrange):
        assert ran.held, (ran.words, ran.ended, ran.seconds, ran.content[:2_000])


@settings(several, max_examples=quick.max_examples)
@given(file=st.sampled_from(FILES), dice=dice_of_hypothesis)
def test_no_file_ends_in_a_traceback(library: EveryFile, file: OutsideFile, dice: random.Random) -> None:
    check(library, file, dice)


@pytest.mark.faults
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_of_a_kind_ends_in_a_traceback(library: EveryFile, file: OutsideFile) -> None:
    for ran in library.commands_on(file, lambda content: content, lambda count: 0):
        assert ran.ended.code == 0, ran  # as it is it can be read, so that what follows is about what is wrong with it

    @settings(several, max_examples=12)
    @given(dice=dice_of_hypothesis)
    def check_any(dice: random.Random) -> None:
        check(library, file, dice)

    check_any()
