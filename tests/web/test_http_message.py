"""Messages, webhooks and settings over HTTP: everybody their own, administrators all."""

from site_kit import Site, fresh_site, newest_site, refused  # noqa: F401 gives the fixtures


async def test_the_person_in_charge_is_told_and_reads_it(site: Site) -> None:
    _, job = await site.item()
    first, second = await site.client("clerk_1"), await site.client("clerk_2")
    await second.worklist.fail(job, await second.worklist.select(job), "no use")
    told = [each async for each in first.messages.all(unread=True, limit=1)]
    assert "task_failed" in {each.kind for each in told}
    assert await first.messages.unread() == len(told)
    assert await first.messages.read([told[-1].id]) == 1
    assert await first.messages.read_up_to(told[0].id) == len(told) - 1
    assert await first.messages.unread() == 0
    outsider = await site.client("outsider")
    assert [each async for each in outsider.messages.all()] == []
    async with refused("unknown_message", 404):
        await outsider.messages.read([each.id for each in told])


async def test_a_webhook_is_ones_own(site: Site) -> None:
    first, boss, outsider = [await site.client(name) for name in ("clerk_1", "boss", "outsider")]
    made = await first.webhooks.add("https://hooks.example.org/4711", kinds=["deadline"])
    assert made.webhook.person == "clerk_1"
    assert (await first.webhooks.address(made.webhook.id)).secret == made.secret
    number = made.webhook.id
    for asked in (outsider.webhooks.get(number), outsider.webhooks.address(number), outsider.webhooks.drop(number)):
        async with refused("unknown_webhook", 404):
            await asked
    async with refused("forbidden", 403):
        await outsider.webhooks.add("https://hooks.example.org/1", everybody=True)
    assert [each.id for each in await boss.webhooks.all()] == [number]
    await first.webhooks.pause(number)
    assert await first.webhooks.try_out(number) > 0
    assert [each.status async for each in first.webhooks.deliveries(number)] == ["waiting"]
    await first.webhooks.resume(number)
    assert await first.webhooks.retry(number) == 0
    await first.webhooks.drop(number)
    assert await boss.webhooks.all() == []


async def test_a_webhook_that_could_not_be_called_is_refused(site18: Site) -> None:
    client = await site18.client("clerk_1")
    for url in ("file:///etc/passwd", "nonsense", "https://", "gopher://a"):
        async with refused("wrong_url", 422):
            await client.webhooks.add(url)


async def test_settings_are_for_administrators(site: Site) -> None:
    boss = await site.client("boss")
    found = {each.name: each.value for each in await boss.settings.set({"transfer": 12}, reason="shorter")}
    assert found["transfer"] == 12
    [change] = [each async for each in boss.settings.changes()]
    assert (change.name, change.writer, change.reason) == ("transfer", "boss", "shorter")
    for wrong, code in (({"transfer": "soon"}, 422), ({"nothing": 1}, 404)):
        answer = await (await site.http("boss")).patch("/api/settings", json={"settings": wrong})
        assert answer.status_code == code
    async with refused("forbidden", 403):
        await (await site.client("clerk_1")).settings.all()
