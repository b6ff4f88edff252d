"""ctypes binding of libqretention."""


def load():
    raise RuntimeError("not yet")
