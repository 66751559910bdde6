"""Lists with their filters that people saved under a name."""

from sqlalchemy import delete, func, select

from service.errors import FieldError, InvalidInput
from service.people.records import SavedView
from service.people.tables import saved_views
from service.sql.bulk import upsert
from service.sql.reader import TimedReader
from service.sql.types import clean, utc

MOST_VIEWS = 200  # of one person, of all pages (judgement): more are no help, and a script could fill the database


class SavedViewReader(TimedReader):
    """Reads saved views."""

    def of(self, actor: str, page: str) -> tuple[SavedView, ...]:
        """A person's saved views of one page, by name."""
        found = self._connection.execute(
            select(saved_views)
            .where(saved_views.c.who == clean(actor[:200]), saved_views.c.page == page)
            .order_by(saved_views.c.name)
        )
        return tuple(SavedView(row.name, row.page, row.query) for row in found)


class SavedViewRepository(SavedViewReader):
    """Reads and writes saved views."""

    def save(self, actor: str, view: SavedView) -> None:
        """Store a view under its name, replacing an earlier one.

        Raises:
            InvalidInput: the person has as many views as a page can show.
        """
        key = {"who": clean(actor[:200]), "name": clean(view.name)}
        others = select(func.count()).select_from(saved_views)
        others = others.where(saved_views.c.who == key["who"], saved_views.c.name != key["name"])
        if self._connection.execute(others).scalar_one() >= MOST_VIEWS:
            expected = f"at most {MOST_VIEWS} saved filters: delete some first"
            raise InvalidInput(f"name: expected {expected}", (FieldError("name", expected),))
        values = {"page": view.page, "query": clean(view.query), "at": utc(self._clock.now())}
        writing = upsert(self._connection, saved_views).values(**key, **values)
        self._connection.execute(writing.on_conflict_do_update(index_elements=list(key), set_=values))

    def remove(self, actor: str, name: str) -> None:
        """Delete a view."""
        self._connection.execute(
            delete(saved_views).where(saved_views.c.who == clean(actor[:200]), saved_views.c.name == clean(name))
        )
