"""What query strings may hold, and what is said about those that may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from tests.http.wire.test_parsing import Colour, outcome

from recado.domain.core.errors import FieldError, Problem
from recado.http.api.models import QueryBool, QueryInt, QueryModel, Timestamp
from recado.http.bodies.parsing import QueryParser
from recado.http.routes.messages.message_models import MessageQuery


class Query(QueryModel):
    limit: QueryInt = Field(default=50, ge=1, le=200)
    number_id: str | None = None
    status: list[Colour] | None = None
    since: Timestamp | None = None
    full: QueryBool = False


class Said(QueryModel):
    forgiving = True

    source: str | None = None
    term: str | None = None


def query(text: str, status: int = 400) -> Query:
    found = QueryParser(Query, status).parse(text)
    assert isinstance(found, Query)
    return found


def test_parameters_are_read_by_their_outer_names() -> None:
    found = query("limit=7&numberId=a%20b&status=red&status=blue&since=2026-01-01T00:00:00%2B02:00&full=true&zzz=1")
    assert (found.limit, found.number_id, found.status) == (7, "a b", [Colour.RED, Colour.BLUE])
    assert (found.since is not None and found.since.hour, found.full) == (22, True)
    assert query("") == query("number_id=ignored")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=", "limit"),
        ("limit=1_0", "limit"),
        ("limit=5.0", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("limit=%D9%A7", "limit"),
        ("limit=1&limit=2", "limit"),
        ("status=", "status"),
        ("status=green", "status"),
        ("status=red&status=green", "status"),
        ("since=2026-01-01", "since"),
        ("since=0", "since"),
        ("since=2026-01-01T00:00:00", "since"),
        ("full=yes", "full"),
        ("full=1", "full"),
        ("numberId=%00", "numberId"),
        ("numberId=\udcff", "numberId"),
    ],
)
def test_a_bad_parameter_is_named(text: str, name: str) -> None:
    for status, code in ((400, "INVALID_PARAMETER"), (422, "VALIDATION_ERROR")):
        with pytest.raises(Problem) as caught:
            query(text, status)
        assert (caught.value.code, caught.value.status) == (code, status)
        assert {error.path for error in caught.value.errors} == {name}


def test_a_query_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(Problem) as caught:
        query("numberId=%ff")
    assert caught.value.code == "INVALID_PARAMETER"


@given(st.text(alphabet="limt=&%+0123456789abcdefstu", max_size=40))
def test_any_query_is_read_or_refused(text: str) -> None:
    found = outcome(lambda: query(text))
    assert isinstance(found, Query) or found.status == 400


def test_more_channels_than_there_are_are_refused_before_any_is_looked_at() -> None:
    parser = QueryParser(MessageQuery, 400)
    with pytest.raises(Problem) as refused:
        parser.parse("&".join(["channel=1"] * 800))
    assert [(error.path, error.code) for error in refused.value.errors] == [("channel", "TOO_MANY")]
    found = parser.parse("channel=sms&channel=chatapp&channel=email&channel=social")
    assert isinstance(found, MessageQuery)
    assert found.channel == ["sms", "chatapp", "email", "social"]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("source=a&source=b", "a"),
        ("source=&source=%20&source=b", "b"),
        ("source=%00&source=b%00&source=c", "c"),
        ("source=%ff%fe&source=b", "b"),
        ("source=\udcff&source=b", "b"),
        ("source=%ED%A0%80", None),
        ("source=%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB", "\U0001f469\u200d\U0001f4bb"),
        ("%ff=x&%00&&=&other=1", None),
    ],
)
def test_of_parameters_that_may_be_anything_the_first_text_counts_and_nothing_is_unknown(
    text: str, source: str | None
) -> None:
    unknown: list[FieldError] = []
    found = QueryParser(Said, 400).parse(text + "&term=t", unknown)
    assert found == Said(source=source, term="t")
    assert unknown == []


@given(st.text(alphabet=st.characters(), max_size=40), st.sampled_from(["source", "term", "", "other"]))
def test_parameters_that_may_be_anything_are_never_refused(text: str, name: str) -> None:
    found = QueryParser(Said, 400).parse(f"{name}={text}&source={text}")
    assert isinstance(found, Said)
    (found.source or "").encode()
