"""What decisions cost grows as it should; by ratios within one run."""

from tools.bench.deciding import anew_ms, cluster, event_us


def test_an_event_costs_as_much_with_many_nodes_as_with_few() -> None:
    few, many = cluster(3, 50), cluster(3, 5000)
    rounds = [(min(event_us(few, 60)), min(event_us(many, 60))) for _ in range(5)]
    assert min(big for _, big in rounds) < 4 * min(small for small, _ in rounds)


def test_looking_at_all_nodes_again_costs_less_than_the_first_look() -> None:
    world = cluster(3, 2000)
    rounds = [(min(anew_ms(world, first=True, times=2)), min(anew_ms(world, first=False, times=2))) for _ in range(4)]
    assert min(later for _, later in rounds) < min(first for first, _ in rounds)
