"""What platforms can do with data and images is seen by their class, and it is what their protocols say."""

from __future__ import annotations

import pytest

from sublet.kernel.plugins import list_platform_kinds, plugins
from sublet.platforms.caching import (
    CachesData,
    FetchesImages,
    MakesImages,
    can_fetch_images,
    can_make_images,
    has_cache,
)
from sublet.platforms.registry import GROUP


@pytest.mark.parametrize("kind", sorted(list_platform_kinds()))
def test_a_class_tells_the_same_as_the_protocols(kind: str) -> None:
    platform = plugins(GROUP)[kind].load().model_construct(name="it")
    assert has_cache(platform) == isinstance(platform, CachesData)
    assert can_fetch_images(platform) == isinstance(platform, FetchesImages)
    assert can_make_images(platform) == isinstance(platform, MakesImages)


def test_there_are_platforms_of_both_sorts() -> None:
    classes = [plugins(GROUP)[kind].load() for kind in list_platform_kinds()]
    for can in (has_cache, can_fetch_images, can_make_images):
        assert {can(cls.model_construct(name="it")) for cls in classes} == {True, False}
