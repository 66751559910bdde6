import sqlite3
import threading
import time

from job import Job


def fault(job):
    match job.how:
        case "locked":
            first = sqlite3.connect("meta.db", isolation_level=None)
            first.execute("create table if not exists runs (id, loss)")
            first.execute("begin exclusive")
            sqlite3.connect("meta.db", timeout=0.2).execute("insert into runs values (1, 0.3)")
        case "readonly":
            base = sqlite3.connect("file:meta.db?mode=rwc", uri=True)
            base.execute("create table runs (id)")
            base.close()
            sqlite3.connect("file:meta.db?mode=ro", uri=True).execute("insert into runs values (1)")
        case "unique":
            base = sqlite3.connect("meta.db")
            base.execute("create table runs (id integer primary key, name)")
            base.execute("insert into runs values (1, 'a')")
            base.execute("insert into runs values (1, 'b')")
        case "thread":
            base = sqlite3.connect("meta.db")
            errors = []

            def work():
                try:
                    base.execute("select 1")
                except sqlite3.Error as error:
                    errors.append(error)

            worker = threading.Thread(target=work)
            worker.start()
            worker.join()
            raise errors[0]
        case "closed":
            base = sqlite3.connect("meta.db")
            base.close()
            base.execute("select 1")
        case "bindings":
            sqlite3.connect(":memory:").execute("select ?, ?", (1,))
        case "open":
            sqlite3.connect("/mnt/metadata/runs.db").execute("select 1")
        case "version":
            base = sqlite3.connect("meta.db")
            base.execute("pragma user_version = 7")
            assert base.execute("pragma user_version").fetchone() == (8,), "schema"
            time.sleep(0)


Job().run(fault)
