"""The verb `filter`: read -> admit (exemption, gates, sync) -> look up -> write. It makes no API call, waits for no
lock and logs nothing.

`verbs.names` reads, looks up and writes, with encoded or decoded names. `verbs.reply.account` counts and records the
reply after it was sent.
"""

from http import HTTPStatus

from extender.policy.exempt import Exemption
from extender.verbs import wire
from extender.verbs.counts import RequestResult
from extender.verbs.names import read
from extender.verbs.pods import mask_of
from extender.verbs.reply import NOT_ANSWERED, Reply, account, exemption_of, is_canary, names_max_of
from extender.verbs.source import Source, Sync
from kube import contract

# Local names, because each call needs them.
_ANSWERED, _OK, _IN_SYNC, _NOT_EXEMPT = RequestResult.ANSWERED, HTTPStatus.OK, Sync.OK, Exemption.NONE


def answer_filter(source: Source, request: bytes | bytearray) -> Reply:
    """Returns the answer to one ExtenderArgs, counted and recorded. Never raises for any content of a request."""
    reply = reply_to_filter(source, request)
    account(source, reply)
    return reply


def reply_to_filter(source: Source, request: bytes | bytearray) -> Reply:
    """Returns the answer without counting and recording it, which is account(). Refusals are noted for the kick already
    here: a release that follows must not miss them."""
    try:
        return _answer(source, request)
    except wire.MalformedError as e:
        return Reply(RequestResult.MALFORMED, wire.write_error(f"readygate: {e}"), status=HTTPStatus.BAD_REQUEST)
    except wire.UnanswerableError as e:
        return Reply(RequestResult.UNANSWERABLE, wire.write_error(str(e)))
    except wire.TooManyNodesError as e:
        return Reply(RequestResult.TOO_LARGE, wire.write_error(str(e)), status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def _answer(source: Source, request: bytes | bytearray) -> Reply:
    """Answers a request. Raises RequestError."""
    classes, attempts, sync = source.classes, source.attempts, source.sync()
    names_max = names_max_of(source, sync, request)
    keep_names = attempts is not None and attempts.keep_names
    asked = read(request, names_max, whole=classes.needs_spec, decode=keep_names)
    pod = asked.pod
    exemption = exemption_of(source, pod)
    mask = classes.all if classes.everybody else mask_of(classes, pod)
    if exemption is not _NOT_EXEMPT:
        if exemption is Exemption.READYGATE and is_canary(source, pod):
            # The canary closes no node, so this is neither counted nor recorded, and no kick follows.
            return Reply(_ANSWERED, asked.decoded().refuse_all(contract.CANARY_REFUSED).body)
        result, found = RequestResult.EXEMPT, asked.decoded().pass_all()
    elif sync is _IN_SYNC:
        result, found = _ANSWERED, asked.look_up(source.board, mask)
    else:
        result, found = NOT_ANSWERED[sync], asked.decoded().unanswered(sync.value)
    return Reply(result, found.body, exemption, _OK, found, pod, mask)
