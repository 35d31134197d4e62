"""What the condition of a node costs does not grow with the number of nodes; by a ratio within one run."""

from tools.bench.writing import Writer


def each_s(writer: Writer) -> float:
    writer.quiet(600.0)
    seconds, writes = writer.spent()
    return seconds / writes


def test_a_write_costs_as_much_with_many_nodes_as_with_few() -> None:
    few, many = Writer(100), Writer(2000)
    rounds = [(each_s(few), each_s(many)) for _ in range(4)]
    assert min(big for _, big in rounds) < 4 * min(small for small, _ in rounds)
