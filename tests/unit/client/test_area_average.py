"""Smaller pictures, against OpenCV."""

import cv2
import numpy as np
import pytest

from relaax.client.area_average import AreaAverage


@pytest.mark.parametrize(
    ("shape", "smaller"),
    [((210, 160), (84, 84)), ((120, 160), (60, 80)), ((7, 5), (7, 5)), ((10, 9), (1, 4))],
)
def test_pixels_are_means_of_areas_as_opencvs(shape: tuple[int, int], smaller: tuple[int, int]):
    picture = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    ours = AreaAverage(shape, smaller)(picture)
    theirs = cv2.resize(picture, smaller[::-1], interpolation=cv2.INTER_AREA)
    assert ours.dtype == np.uint8
    assert ours.shape == smaller
    # Both round what they have added up in single precision.
    np.testing.assert_allclose(ours.astype(int), theirs, atol=1)


def test_a_worked_example():
    picture = np.array([[0, 100, 200]], np.uint8)  # two areas of one and a half pixels
    assert AreaAverage((1, 3), (1, 2))(picture).tolist() == [[33, 167]]


def test_pictures_do_not_grow():
    with pytest.raises(ValueError, match="3 pixels cannot be shrunk to 4"):
        AreaAverage((3, 3), (3, 4))
