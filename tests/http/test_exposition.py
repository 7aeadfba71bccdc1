"""What Prometheus reads of figures, by its own parser (C34.1)."""

from prometheus_client.parser import text_string_to_metric_families

from recado.http.routes.ops.exposition import Exposition, counter, gauge, histogram

ODD = 'a "b"\\ \n é{}=,'


async def test_what_is_written_is_read_as_it_was() -> None:
    text = await Exposition().text([
        counter("recado_things", "Things", ("route",), {("x",): 3, (ODD,): 10**17}),
        gauge("recado_now", "Now", (), {(): -2.5}),
        histogram("recado_seconds", "How long", ("batch",), (0.25, 1.0), [(("b",), (1, 0, 2), 4.5)]),
    ])  # fmt: skip
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    assert samples == {
        ("recado_things_total", "x"): 3,
        ("recado_things_total", ODD): 10**17,
        ("recado_now",): -2.5,
        ("recado_seconds_bucket", "b", "0.25"): 1,
        ("recado_seconds_bucket", "b", "1.0"): 1,
        ("recado_seconds_bucket", "b", "+Inf"): 3,
        ("recado_seconds_count", "b"): 3,
        ("recado_seconds_sum", "b"): 4.5,
    }


async def test_a_later_text_tells_what_moved_what_is_new_and_not_what_is_gone() -> None:
    """As one that is written anew: only those series that moved are."""
    exposition = Exposition()
    moments = [
        ({("a",): 1.0, ("b",): 2.0}, {("a",): ([1, 0, 0], 0.1), ("b",): ([0, 0, 2], 9.0)}),
        ({("a",): 1.0, ("b",): 3.0, ("c\r",): 4.0}, {("a",): ([1, 0, 0], 0.1), ("b",): ([0, 1, 2], 9.5)}),
        ({("b",): 3.0}, {}),
        ({}, {("b",): ([0, 1, 2], 9.5), ("a",): ([1, 0, 0], 0.1)}),
        ({("a",): 1.0, ("b",): 2.0}, {("a",): ([1, 0, 0], 0.2), ("b",): ([0, 1, 2], 9.5)}),
    ]  # fmt: skip
    texts = []
    for figures, times in moments:
        families = [
            gauge("recado_now", "Now", ("of",), figures),
            histogram("recado_seconds", "How long", ("of",), (0.25, 1.0), [(of, *seen) for of, seen in times.items()]),
        ]
        texts.append(await exposition.text(families))
        assert texts[-1] == await Exposition().text(families)
    assert len(set(texts)) == len(moments)
    assert texts[-1].count(b"# TYPE") == 2
    times["a",][0][1] += 1  # those who count go on with the same list
    families[1] = histogram(
        "recado_seconds", "How long", ("of",), (0.25, 1.0), [(of, *seen) for of, seen in times.items()]
    )
    assert await exposition.text(families) != texts[-1]
