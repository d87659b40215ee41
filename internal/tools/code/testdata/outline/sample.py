"""Module.

class NotAClass:
"""
import os

LIMIT = 10
name: str = "x"
if LIMIT == 3:
    pass


@decorator
class Store(Base):
    """A store."""

    limit = 5

    def __init__(self, a,
                 b=None):
        def local():
            pass
        self.a = a

    async def load(self) -> str:
        # def commented():
        return '''
def in_string():
'''

    class Inner:
        def deep(self): ...


def main(): pass
