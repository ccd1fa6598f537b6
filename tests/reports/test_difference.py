"""Two texts side by side: what is marked, what is folded, and that nothing is lost however hostile the texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.difference import Difference, Fold, Line, Place, Row, RowKind, compare_texts

LINES = st.lists(st.sampled_from(["", " ", "a", "b", "ab", "ba", "a b", "{{ x }}", "{{ y }}", "a\r"]), max_size=30)
LINED_TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n", "c"]))
TEXTS = LINED_TEXTS | st.text(alphabet="ab \r\n", max_size=60) | st.text()
EFFORTS = st.sampled_from([0, 100, 500, 2_000, 1_000_000])


def drawn(line: Line | None) -> str:
    """A line with its changed characters in brackets, and `~` where no newline ends it."""
    if line is None:
        return ""
    marked = "".join(f"[{piece.text}]" if piece.changed else piece.text for piece in line.segments)
    return marked + "~" * line.no_newline


def table(difference: Difference) -> list[str | tuple[str, str]]:
    """The rows without their numbers: an equal line or a fold once, else both sides."""
    rows: list[str | tuple[str, str]] = []
    for row in difference.rows:
        if isinstance(row, Fold):
            rows.append(f"... {row.count}")
        elif row.kind is RowKind.EQUAL:
            rows.append(drawn(row.left))
        else:
            rows.append((drawn(row.left), drawn(row.right)))
    return rows


def marks(left: str, right: str) -> tuple[str, str]:
    (row,) = compare_texts(left + "\n", right + "\n").rows
    assert isinstance(row, Row)
    return drawn(row.left), drawn(row.right)


def test_a_prompt_that_one_side_renders_otherwise() -> None:
    left = "<s>system\nYou are helpful.\n</s>\n<s>user\nWhat is the weather?\n</s>\n<s>assistant\n"
    right = left.replace("helpful", "a helpful robot").replace("</s>\n<s>assistant\n", "</s>\n\n<s>assistant")
    difference = compare_texts(left, right, context=1)
    assert table(difference) == [
        "<s>system",
        ("You are helpful.", "You are [a ]helpful[ robot]."),
        "</s>",
        "<s>user",
        "What is the weather?",
        "</s>",
        ("", ""),
        ("<s>assistant", "<s>assistant~"),
    ]
    assert (difference.changed, difference.removed, difference.added) == (2, 0, 1)
    assert difference.first == Place(2, 9)
    assert not difference.equal


def test_lines_far_from_a_difference_are_folded() -> None:
    common = [f"line {number}" for number in range(1, 11)]
    difference = compare_texts("\n".join([*common, "left", *common]), "\n".join([*common, "right", *common]), context=2)
    assert table(difference) == [
        "... 8",
        "line 9",
        "line 10",
        ("[left]", "[right]"),
        "line 1",
        "line 2",
        "... 8",
    ]
    assert [row for row in difference.rows if isinstance(row, Fold)] == [Fold(1, 1, 8), Fold(14, 14, 8)]


@pytest.mark.parametrize(("hidden", "shown"), [(1, ["1", "2"]), (2, ["1", "2", "3"]), (3, ["... 3", "4"])])
def test_a_fold_of_one_or_two_lines_is_no_help(hidden: int, shown: list[str]) -> None:
    before = "".join(f"{number + 1}\n" for number in range(hidden + 1))
    assert table(compare_texts(before + "x\n", before + "y\n", context=1)) == [*shown, ("[x]", "[y]")]


@pytest.mark.parametrize(
    ("text", "rows"),
    [("", []), ("a", ["a~"]), ("a\nb\n", ["a", "b"]), ("a\nb\nc", ["... 3"]), ("a\n\n\n", ["... 3"])],
)
def test_equal_texts_are_one_fold(text: str, rows: list[str]) -> None:
    difference = compare_texts(text, text)
    assert table(difference) == rows
    assert difference.equal
    assert difference.changed == difference.removed == difference.added == 0


def test_a_missing_newline_at_the_end_is_a_difference() -> None:
    difference = compare_texts("a", "a\n")
    assert table(difference) == [("a~", "a")]
    assert difference.first == Place(1, 2)
    assert table(compare_texts("a", "a\n\n")) == [("a~", "a"), ("", "")]


def test_a_carriage_return_is_a_character_of_its_line() -> None:
    assert table(compare_texts("a\r\nb\rc\n", "a\nb\rc\n")) == [("a[\r]", "a"), "b\rc"]


def test_other_line_ends_of_unicode_end_no_line() -> None:
    assert table(compare_texts("a\u2028b\x0cc\x85d", "a\u2028b\x0cc\x85e")) == [
        ("a\u2028b\x0cc\x85[d]~", "a\u2028b\x0cc\x85[e]~")
    ]


@pytest.mark.parametrize(
    ("left", "right", "marked"),
    [
        ("effort: low", "effort: high", ("effort: [low]", "effort: [high]")),
        ("message['content']", 'message["content"]', ("message[[']content[']]", 'message[["]content["]]')),
        ("28 Jul 2024", "26 Jul 2024", ("2[8] Jul 2024", "2[6] Jul 2024")),
        ("今日は天気がいい", "今日は気分がいい", ("今日は[天気]がいい", "今日は[気分]がいい")),
        ("    {{ x }}", "{{ x }}", ("[    ]{{ x }}", "{{ x }}")),
        ("a b", "a  b", ("a b", "a [ ]b")),
        ("{{ bos }}{{ x }}", "{{ x }}", ("[{{ bos }}]{{ x }}", "{{ x }}")),
        ("'}}{% endfor %}", "'}}{% endif %}{% endfor %}", ("'}}{% endfor %}", "'}}[{% endif %}]{% endfor %}")),
        ("to be or not", "to be or not to be", ("to be or not", "to be or not[ to be]")),
    ],
)
def test_marks_are_what_a_reader_would_mark(left: str, right: str, marked: tuple[str, str]) -> None:
    assert marks(left, right) == marked


def test_lines_with_little_in_common_are_marked_whole() -> None:
    left, right = "The quick brown fox jumps over the lazy dog.", "for tool in tools: print(tool.name, tool.kind)"
    assert marks(left, right) == (f"[{left}]", f"[{right}]")


def test_a_few_equal_characters_between_changes_are_no_island() -> None:
    assert marks("name: abcXde, end", "name: fghXij, end") == ("name: [abcXde], end", "name: [fghXij], end")


def test_lines_are_paired_with_the_line_they_resemble() -> None:
    left = "{%- set content = message.content %}\n{{- content }}\n"
    right = "{%- set role = message.role %}\n{%- set content = message.content | trim %}\n{{- content }}\n"
    assert table(compare_texts(left, right)) == [
        ("", "[{%- set role = message.role %}]"),
        ("{%- set content = message.content %}", "{%- set content = message.content [| trim ]%}"),
        "{{- content }}",
    ]


def test_equal_lines_are_numbered_on_both_sides() -> None:
    (added, equal) = compare_texts("b\n", "a\nb\n").rows
    assert isinstance(added, Row)
    assert isinstance(equal, Row)
    assert (added.kind, added.left, added.right and added.right.number) == (RowKind.ADDED, None, 1)
    assert (equal.kind, equal.left and equal.left.number, equal.right and equal.right.number) == (RowKind.EQUAL, 1, 2)


def test_one_side_may_be_empty() -> None:
    assert table(compare_texts("", "a\n\nb")) == [("", "[a]"), ("", ""), ("", "[b]~")]
    assert table(compare_texts("a\n", "")) == [("[a]", "")]


def rebuilt(text: str, difference: Difference, *, left: bool) -> str:
    """One side put together from its rows; only folded lines are taken from the text, by their numbers."""
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    pieces: list[str] = []
    next_number = 1
    for row in difference.rows:
        if isinstance(row, Fold):
            assert (row.left if left else row.right) == next_number
            pieces += whole[next_number - 1 : next_number - 1 + row.count]
            next_number += row.count
        elif (line := row.left if left else row.right) is not None:
            assert line.number == next_number
            pieces.append("".join(piece.text for piece in line.segments) + "\n" * (not line.no_newline))
            next_number += 1
    return "".join(pieces)


def folded(text: str, start: int, count: int) -> list[str]:
    return text.split("\n")[start - 1 : start - 1 + count]


@given(TEXTS, TEXTS, st.integers(0, 3), EFFORTS)
@settings(deadline=None)
def test_the_rows_are_the_texts(left: str, right: str, context: int, effort: int) -> None:
    difference = compare_texts(left, right, context=context, effort=effort)
    assert rebuilt(left, difference, left=True) == left
    assert rebuilt(right, difference, left=False) == right
    assert difference.equal == (left == right)


@given(TEXTS, TEXTS, EFFORTS)
@settings(deadline=None)
def test_what_is_not_marked_is_equal(left: str, right: str, effort: int) -> None:
    difference = compare_texts(left, right, effort=effort)
    for row in difference.rows:
        if isinstance(row, Fold):
            assert row.count >= 3
            assert folded(left, row.left, row.count) == folded(right, row.right, row.count)
        elif row.left is not None and row.right is not None:
            plain = [[piece.text for piece in line.segments if not piece.changed] for line in (row.left, row.right)]
            assert "".join(plain[0]) == "".join(plain[1])
            differs = row.left.no_newline != row.right.no_newline or any(
                piece.changed for line in (row.left, row.right) for piece in line.segments
            )
            assert differs == (row.kind is RowKind.CHANGED)
        for line in () if isinstance(row, Fold) else (row.left, row.right):
            assert line is None or all(piece.text for piece in line.segments)


@given(TEXTS, TEXTS, EFFORTS)
@settings(deadline=None)
def test_the_first_difference_is_in_the_first_unequal_row(left: str, right: str, effort: int) -> None:
    difference = compare_texts(left, right, effort=effort)
    unequal = [row for row in difference.rows if isinstance(row, Row) and row.kind is not RowKind.EQUAL]
    assert difference.changed + difference.removed + difference.added == len(unequal)
    if difference.first is None:
        assert unequal == []
        return
    numbers = [line.number for line in (unequal[0].left, unequal[0].right) if line is not None]
    assert difference.first.line in numbers
    before = "\n" * (difference.first.line - 1) + "x" * difference.first.character
    common = max(length for length in range(len(left) + 1) if right.startswith(left[:length]))
    assert left.count("\n", 0, common) == before.count("\n")
    assert common - left.rfind("\n", 0, common) == difference.first.character


HUNDRED_THOUSAND = 100_000


@pytest.mark.parametrize(
    ("left", "right", "changed"),
    [
        pytest.param("x\n" * HUNDRED_THOUSAND, "x\n" * (HUNDRED_THOUSAND + 1), 0, id="lines alike"),
        pytest.param(
            "x\n" * HUNDRED_THOUSAND,
            "x\n" * 20_000 + "y\n" + "x\n" * 50_000 + "z\n" + "x\n" * (HUNDRED_THOUSAND - 70_002),
            2,
            id="two changed among lines alike",
        ),
        pytest.param("ab " * 350_000, "ab " * 200_000 + "c" + "ab " * 149_999, 1, id="one endless line"),
        pytest.param("a " * 500_000, "b " * 500_000, 1, id="endless lines that share only blanks"),
        pytest.param("a\nb\n" * 20_000, "b\na\na\n" * 13_000, None, id="two lines in another order"),
        pytest.param("a" * 1_000_000, "", 0, id="nothing on one side"),
    ],
)
def test_hostile_texts_are_compared_within_the_budget(left: str, right: str, changed: int | None) -> None:
    difference = compare_texts(left, right)
    assert rebuilt(left, difference, left=True) == left
    assert rebuilt(right, difference, left=False) == right
    assert changed is None or difference.changed == changed


def test_a_change_in_a_long_text_stays_small() -> None:
    lines = [f"{number}: {number * number}\n" for number in range(30_000)]
    edited = [*lines[:9_000], "a new line\n", *lines[9_000:20_000], "20000: changed\n", *lines[20_001:]]
    difference = compare_texts("".join(lines), "".join(edited), context=0)
    assert table(difference) == [
        "... 9000",
        ("", "[a new line]"),
        "... 11000",
        ("20000: [400000000]", "20000: [changed]"),
        "... 9999",
    ]
