"""Splits lists into pages, and makes the tokens by which a client asks for the next one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from google.protobuf.message import Message

from animalcat.service.errors import Code, ServiceError
from animalcat.service.storage.listing import Listing, Page
from animalcat.text.json_text import read_json

PAGE: Final = 100
"""Number of items on a page if the request gives no size."""
MOST: Final = 1000
"""Most items of a page."""
_OWN: Final = ("page_size", "page_token")
"""Fields of a request that concern only its page."""

_T = TypeVar("_T")


def page_of_list(
    items: Sequence[_T],
    key: Callable[[_T], str],
    request: Message,
    find: Callable[[str], int | None] | None = None,
) -> Listing[_T]:
    """Return the page of a list in memory that a request asks for by its size and token.

    A token names the last item before its page, so that nothing is shown twice or left out if items
    are added meanwhile. It is valid only for the list and the filters that it came from.

    Args:
        items: The whole list, already filtered.
        key: Returns a key that is unique to an item and never changes.
        request: The request. All fields but those of the page define the list.
        find: Returns the place of an item by its key, or None; None to look through the list.

    Raises:
        ServiceError: The token belongs to another list, or its item is gone.
    """
    size = _size(request)
    token: str = getattr(request, "page_token")  # noqa: B009
    start = 0
    if token:
        after = _after(token, _digest(request))
        place = _find_offset(items, key, after) if find is None else find(after)
        if place is None:
            raise ServiceError(
                Code.BAD_PAGE, f"{after!r} is no longer in the list; start with the first page"
            )
        start = place + 1
    shown = items[start : start + size]
    more = start + size < len(items)
    return Listing(shown, _token(key(shown[-1]), _digest(request)) if more else "")


def stored_page(request: Message) -> Page:
    """Return which page of one of the store's lists a request asks for."""
    return Page(_size(request), getattr(request, "page_token"))  # noqa: B009


def _find_offset(items: Sequence[_T], key: Callable[[_T], str], wanted: str) -> int | None:
    return next((k for k, item in enumerate(items) if key(item) == wanted), None)


def _size(request: Message) -> int:
    return min(getattr(request, "page_size") or PAGE, MOST)  # noqa: B009


def _token(last: str, digest: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([digest, last]).encode()).decode()


def _after(token: str, digest: str) -> str:
    try:
        of, last = read_json(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, TypeError, binascii.Error):
        of, last = "", ""
    if of != digest or not isinstance(last, str):
        raise ServiceError(
            Code.BAD_PAGE,
            "page_token does not belong to this list with these filters; give the next_page_token "
            "of its previous page, or none for the first page",
        )
    return last


def _digest(request: Message) -> str:
    """Return a digest of what a request asks for, leaving out its page."""
    asked = type(request)()
    asked.CopyFrom(request)
    for field in _OWN:
        asked.ClearField(field)
    data = asked.SerializeToString(deterministic=True)
    return hashlib.blake2b(
        data, digest_size=8, person=type(request).__name__[:16].encode()
    ).hexdigest()
