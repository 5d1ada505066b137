"""The software house of the WorkToDo dissertation, section 5.4: its listings, and its fifteen steps, over HTTP.

The cooperative task is done by one of its role: groups are not there yet. The server is another one after each third of
the story, and nobody notices.
"""

import msgspec
from people import EXAMPLES, items, read_all, set_up, tasks
from served import Served, site_on

from mutirao.model.file import File

PERSONS = {
    "boss": ["administrator"],
    "Hudo": ["Gerente"],
    "Paulo": ["Analista_Sistemas", "Programador"],
    "Joao": ["Programador"],
    "analyst_2": ["Analista_Sistemas"],
}


async def test_a_system_is_written_from_the_requirements_to_the_classes(database_url: str) -> None:
    async with site_on(database_url, Served) as site:
        await set_up(site.engine, PERSONS)
        boss, hudo = await site.client("boss"), await site.client("Hudo")
        paulo, analyst = await site.client("Paulo"), await site.client("analyst_2")
        await boss.library.apply((EXAMPLES / "software_house.pdl").read_text("utf-8"), creator="Gerente")

        # 1. Somebody of the creator role creates an instance, and is in charge of it.
        created = await hudo.instances.create("criacao_sistema_software")
        assert (created.status, created.in_charge) == ("open.running", "Hudo")
        # 2, 3. A task without dependencies is ready at once, and is in the list of everybody in its role.
        [item] = await items(paulo)
        assert (item.task, item.status, item.kind) == ("levantar_requisitos", "ready", "semi_automatic")
        assert (item.priority, item.application, item.description) == (
            20,
            "EditorTexto",
            "Redigir um documento usando um editor de texto",
        )
        assert [each.job for each in await items(analyst)] == [item.job]
        # 4. One of them selects it, and it leaves the others' lists; then executes it, and tells the result.
        attempt = await paulo.worklist.select(item.job)
        assert await tasks(analyst) == []
        assert [each.status for each in await items(paulo)] == ["running"]
        requirements = await paulo.files.put(b"It shall keep the books.", "Requisitos.txt")
        await paulo.worklist.finish(item.job, attempt, {"requisitos": msgspec.to_builtins(requirements)})

    async with site_on(database_url, Served) as site:
        paulo, analyst, joao = await site.client("Paulo"), await site.client("analyst_2"), await site.client("Joao")
        # 5. That lets the next task start, and it is offered in turn.
        assert await tasks(paulo) == await tasks(analyst) == ["elaborar_especificacao"]
        assert await tasks(joao) == []
        # 6. Another analyst does it, with what the first one wrote.
        [item] = await items(analyst)
        attempt = await analyst.worklist.select(item.job)
        given = (await analyst.worklist.show(item.job)).inputs
        assert list(given) == ["requisitos"]
        handed_on = msgspec.convert(given["requisitos"], File)
        assert await read_all(analyst, item.instance, handed_on) == b"It shall keep the books."
        specification = await analyst.files.put(b"Books have pages.", "Especificacao.doc")
        await analyst.worklist.finish(item.job, attempt, {"especificacao": msgspec.to_builtins(specification)})

    async with site_on(database_url, Served) as site:
        hudo, paulo, joao = await site.client("Hudo"), await site.client("Paulo"), await site.client("Joao")
        # 7. The last task can start.
        [item] = await items(joao)
        assert (item.task, item.kind, item.priority) == ("implementar_classes", "cooperative", 30)
        # 8 to 12. One of the role does it; with groups, those whom its model names would do it together.
        attempt = await joao.worklist.select(item.job)
        assert await tasks(paulo) == []
        classes = await joao.files.put(b"<h1>Interface</h1>", "Classes.html", media="text/html")
        await joao.worklist.finish(item.job, attempt, {"classes": msgspec.to_builtins(classes)})
        # 13, 14. Nothing is left to do: the process is complete, and kept with its state and its story.
        ended = await hudo.instances.get(item.instance)
        assert ended.status == "closed.completed"
        assert ended.state["classes"]["name"] == "Classes.html"
        story = [(row.task, row.writer) async for row in hudo.instances.trace(item.instance) if row.kind == "finish"]
        assert story == [
            ("levantar_requisitos", "Paulo"),
            ("elaborar_especificacao", "analyst_2"),
            ("implementar_classes", "Joao"),
        ]
        # 15. Whoever is in charge is told.
        kinds = [message.kind async for message in hudo.messages.all()]
        assert kinds == ["instance_ended", "instance_started"]


async def test_only_the_creator_role_creates_and_only_the_role_does(database_url: str) -> None:
    async with site_on(database_url, Served) as site:
        await set_up(site.engine, PERSONS)
        boss, hudo, joao = await site.client("boss"), await site.client("Hudo"), await site.client("Joao")
        await boss.library.apply((EXAMPLES / "software_house.pdl").read_text("utf-8"), creator="Gerente")
        flows = [flow.name for flow in await joao.flows.startable()]
        assert flows == []
        created = await hudo.instances.create("criacao_sistema_software")
        [job] = [job async for job in hudo.instances.jobs(created.id)]
        assert await tasks(joao) == []
        assert await tasks(hudo) == [], "who is in charge does not do it for that"
        assert job.task == "levantar_requisitos"
