"""Uploads: receiving files, storing them, using them as data, and removing them when they expire."""

from sublet.data.uploads.area import FOLDER, UploadArea
from sublet.data.uploads.care import UploadCare
from sublet.data.uploads.mover import UploadMover
from sublet.data.uploads.names import UploadNames
from sublet.data.uploads.transfers import UploadTransfers
from sublet.data.uploads.uploads import Uploads

__all__ = ["FOLDER", "UploadArea", "UploadCare", "UploadMover", "UploadNames", "UploadTransfers", "Uploads"]
