"""Pure: two words on one pod over time, ours and the kubelet's; which one is believed.

Both make the same probes at other moments, so for a while after each change they differ, and that is nothing. The rule:
whoever has changed later knows more. In particular, by what we say of a pod that was ready:

    we say ready                                        open
    we do not know                                      as before, until the kubelet has changed its word, or until
                                                        all that was not ready is: a container whose probe we cannot
                                                        make is unknown for ever, and holds nothing closed
    both say not ready                                  as before (its Ready closes the node anyway)
    ours has changed from ready since the kubelet's     closed at once: it will say the same within its next probes
    ours was there first                                closed once both stand for `stand_s`: it changed its word later

*Closed* is the finding ProbesFailed; where both words have stood for `stand_s` and the kubelet lives, it disagrees, and
the finding says so. A kubelet that stands by "not ready" against our "ready" is said too, but closes nothing more.
An agent that starts has no words of before, but what was said of the pod stands in the API server: where that was
*closed*, it is so again, unless the kubelet has changed its word since. So a restart opens nothing that still fails.
What the kubelet says is news only while the API server tells any: without it no disagreement grows old.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.opinion.readiness import Word


class Stance(StrEnum):
    """What comes of two words."""

    AGREED = "agreed"
    FAILED = "failed"  # our probes fail; the kubelet has not said so yet, or has
    DISPUTED_READY = "disputed ready"  # the kubelet says ready, we do not, for long
    DISPUTED_UNREADY = "disputed unready"  # the other way round


@dataclass(frozen=True, slots=True)
class Words:
    """Since when what is said, monotonic seconds. `fell`: ours was ready before it was not. `closed`: see above.
    `by`: containers that were not ready when it was heard of them last."""

    ours: Word = Word.UNKNOWN
    ours_since: float = 0.0
    theirs: Word = Word.UNKNOWN
    theirs_since: float = 0.0
    fell: bool = False
    closed: bool = False
    closed_at: float = 0.0
    by: frozenset[str] = frozenset()

    @property
    def both_since(self) -> float:
        return max(self.ours_since, self.theirs_since)


def heard(
    before: Words | None,
    ours: Word,
    theirs: Word,
    monotonic: float,
    *,
    stand_s: float,
    news: bool,
    unready: Collection[str] = (),
    unknown: Collection[str] = (),
    closed_before: frozenset[str] | None = None,
) -> Words:
    """The words after one more look. news: the API server has told of late what there is to tell. unready, unknown:
    containers that we find so. closed_before: what an agent before us may have closed it for; None: it has not."""
    if before is None:
        closed, by = closed_before is not None, closed_before or frozenset()
        before = Words(ours, monotonic, theirs, monotonic, closed=closed, closed_at=monotonic, by=by)
    words = before
    if theirs is not words.theirs:
        words = replace(words, theirs=theirs, theirs_since=monotonic)
    if ours is not words.ours:
        fell = ours is Word.NOT_READY and (words.ours is Word.READY or words.fell)
        words = replace(words, ours=ours, ours_since=monotonic, fell=fell)
    by = frozenset(unready) | (words.by & frozenset(unknown))
    over = bool(words.by) and not by
    closed = _closed(words, monotonic, stand_s, news=news, over=over)
    if closed is not words.closed:
        words = replace(words, closed=closed, closed_at=monotonic)
    return words if by == words.by else replace(words, by=by)


def _closed(words: Words, monotonic: float, stand_s: float, *, news: bool, over: bool) -> bool:
    match words.ours:
        case Word.READY:
            return False
        case Word.UNKNOWN:
            return words.closed and not over and words.theirs_since <= words.closed_at
        case Word.NOT_READY if words.theirs is Word.READY and not words.closed:
            is_later = words.fell and words.ours_since >= words.theirs_since
            return is_later or (news and monotonic - words.both_since >= stand_s)
        case _:
            return words.closed


def stance(words: Words, monotonic: float, *, stand_s: float, news: bool) -> Stance:
    """What comes of the words now."""
    stands = news and monotonic - words.both_since >= stand_s
    if words.closed:
        return Stance.DISPUTED_READY if stands and words.theirs is Word.READY else Stance.FAILED
    if stands and words.ours is Word.READY and words.theirs is Word.NOT_READY:
        return Stance.DISPUTED_UNREADY
    return Stance.AGREED
