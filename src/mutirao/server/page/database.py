"""Databases that flows ask, and applications and task models that they share: for administrators.

An address of a database is a secret: `SourceRecord.address` is all of it that a page may have.
"""

from collections import defaultdict

from fastapi import Request, Response

from mutirao.database.application import application_tasks
from mutirao.database.engine import Engine
from mutirao.model.library_document import application, task_model
from mutirao.server.need import Administrator
from mutirao.server.page.shell import pages, render

router = pages()

PLACE = "/databases"


@router.get("/databases")
async def databases(request: Request, who: Administrator) -> Response:
    return render(request, "databases.html", databases=await who.engine.sources.all())


@router.get("/applications")
async def applications(request: Request, who: Administrator) -> Response:
    """With the workers that are alive and do a task that the application does."""
    found = [(each, application(each.document)) for each in await who.engine.library.all("application")]
    runners = await _runners(who.engine) if found else {}
    return render(request, "database_applications.html", path=PLACE, applications=found, runners=runners)


@router.get("/task_models")
async def task_models(request: Request, who: Administrator) -> Response:
    models = [(each, task_model(each.document)) for each in await who.engine.library.all("task_model")]
    return render(request, "database_models.html", path=PLACE, models=models)


async def _runners(engine: Engine) -> dict[str, list[str]]:
    """Names of workers by application."""
    applications = defaultdict(set)
    for each in await application_tasks(engine):
        applications[f"{each.flow}.{each.task}"].add(each.application.name)
    found = defaultdict(set)
    for worker in await engine.workers():
        if worker.alive:
            for task in worker.tasks:
                for name in applications.get(task, ()):
                    found[name].add(worker.name)
    return {name: sorted(workers) for name, workers in found.items()}
