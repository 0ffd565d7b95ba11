import pytest

from orthonmf import exceptions

BUILT_IN = {
    "DataUnavailableError": OSError,
    "DistributedFitError": RuntimeError,
    "FileAccessError": OSError,
    "InfeasibleCapacityError": ValueError,
    "DeviceMemoryError": MemoryError,
    "IntegrityError": RuntimeError,
    "InvalidInputError": ValueError,
    "MissingExtraError": ImportError,
    "ModelFormatError": ValueError,
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_error_is_ours_and_of_the_built_in_kind(name):
    error = getattr(exceptions, name)
    assert issubclass(error, exceptions.OrthonmfError)
    assert issubclass(error, BUILT_IN[name])


def test_the_list_is_complete():
    assert set(exceptions.__all__) == {
        *BUILT_IN,
        "OrthonmfError",
        "CheckpointWarning",
        "DistributedWarning",
        "NothingStandsOutWarning",
        "UnitsWarning",
    }
