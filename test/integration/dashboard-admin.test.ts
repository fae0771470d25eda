/** Managed users, usage and limits in the built-in dashboard, in a real browser against the real program. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { en } from "#ui/words/en/index.ts";
import { fa } from "#ui/words/fa/index.ts";
import { Words } from "#ui/words/words.ts";
import { noBrowser, type WatchedPage } from "../support/browser.ts";
import { FULL_ADMIN_SECRET, FULL_SECRET, FULL_UUID } from "../support/full-core.ts";
import { openFullDashboard, type FullDashboard } from "../support/full-dashboard.ts";

const options = { skip: noBrowser };

let world: FullDashboard;
before(async () => {
  if (noBrowser !== false) return;
  world = await openFullDashboard(
    (socket) => void socket.on("data", () => socket.write(Buffer.alloc(500_000))),
  );
});
after(() => world?.[Symbol.asyncDispose]());

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const secret = path.startsWith("/api/admin/") ? FULL_ADMIN_SECRET : FULL_SECRET;
  const answer = await fetch(world.full.base + path, {
    method,
    headers: { authorization: `Bearer ${secret}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text === "" ? "null" : text) as T;
}

/** What the browser itself says of answers that were asked for on purpose is no fault. */
const faultsOf = ({ complaints }: WatchedPage) =>
  complaints.filter((text) => !/401 \(Unauthorized\)|409 \(Conflict\)|400 \(Bad Request\)/.test(text));

const seen = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

/** Until the admin API has said yes: the page is through with a dialog before that. */
async function answered(page: Page, method: string, press: () => Promise<void>): Promise<void> {
  const answer = page.waitForResponse((response) => response.ok() && response.request().method() === method);
  await press();
  await answer;
}

interface UserJson {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly revision: number;
  readonly subscription_url: string;
  readonly quota?: { readonly total_bytes: number; readonly reset: string };
  readonly download_bps?: number;
  readonly expires_at?: number;
  readonly labels?: readonly string[];
  readonly note?: string;
}

async function userNamed(name: string): Promise<UserJson> {
  const { users } = await call<{ users: readonly UserJson[] }>("GET", "/api/admin/users");
  const found = users.find((user) => user.name === name);
  assert.ok(found !== undefined, `${name} among ${users.map((user) => user.name).join()}`);
  return call<UserJson>("GET", `/api/admin/users/${found.id}`);
}

test("the admin secret is asked for, its own, and kept nowhere", options, async () => {
  await using watched = await world.open("users");
  const { page } = watched;
  const field = page.getByLabel("Admin secret");
  await field.fill(FULL_SECRET);
  await page.keyboard.press("Enter");
  await seen(page, "That is not the secret.");
  await field.fill(FULL_ADMIN_SECRET);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "seeded" }).waitFor();
  const kept = String(
    await page.evaluate(
      "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, document.documentElement.outerHTML])",
    ),
  );
  assert.ok(!kept.includes(FULL_ADMIN_SECRET) && !kept.includes(FULL_SECRET));
  await page.getByRole("button", { name: "Forget the admin secret" }).click();
  await page.getByLabel("Admin secret").waitFor();
  assert.deepEqual(faultsOf(watched), []);
});

test(
  "a user's life: made, searched, edited, disabled, link copied and shown, rotated, deleted",
  options,
  async () => {
    await using watched = await world.openUsers();
    const { page } = watched;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: world.full.base });
    await page.getByRole("button", { name: "New user" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Name").fill("<b>zoe</b>");
    await form.getByLabel("Quota", { exact: true }).fill("5 parsecs");
    await page.keyboard.press("Enter");
    await form.getByText("Quota: expected an amount").waitFor();
    await form.getByLabel("Quota", { exact: true }).fill("100 GiB");
    await form.getByLabel("Quota begins anew").selectOption("month");
    await form.getByLabel("Download").fill("20M");
    await form.getByLabel("Expires").fill("2040-01-02T03:04");
    await form.getByLabel("Labels").fill("family, paid ,family");
    await form.getByLabel("Note").fill("first line\n<i>second</i>");
    await form.getByRole("button", { name: "Create" }).click();
    const details = page.getByRole("dialog", { name: "<b>zoe</b>" });
    await details.getByText("20 Mbit/s down").waitFor();
    const zoe = await userNamed("<b>zoe</b>");
    assert.deepEqual(
      [zoe.quota?.total_bytes, zoe.quota?.reset, zoe.download_bps],
      [100 * 2 ** 30, "month", 20e6],
    );
    assert.deepEqual([zoe.labels, zoe.note], [["family", "paid"], "first line\n<i>second</i>"]);
    await details.getByText("<i>second</i>").waitFor();
    assert.ok((zoe.expires_at ?? 0) > Date.parse("2040-01-01T00:00:00Z"));

    await details.getByText(zoe.subscription_url).waitFor();
    await details.getByRole("button", { name: "Copy link" }).click();
    await seen(page, "Link copied");
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), zoe.subscription_url);
    await details.getByRole("button", { name: "QR code" }).click();
    await details.getByRole("img", { name: "QR code of the subscription link" }).waitFor();
    await details.getByRole("img", { name: /^Usage of <b>zoe<\/b>, last 31 days/ }).waitFor();
    await details.getByRole("button", { name: "New link" }).click();
    await details.getByText(zoe.subscription_url).waitFor({ state: "detached" });
    assert.notEqual((await userNamed("<b>zoe</b>")).subscription_url, zoe.subscription_url);
    await details.getByRole("button", { name: "Disable" }).click();
    await details.getByText("No link").waitFor();
    assert.equal((await userNamed("<b>zoe</b>")).enabled, false);
    await details.getByRole("button", { name: "Edit" }).click();
    const edit = page.getByRole("dialog");
    await edit.getByLabel("Name").fill("zoe");
    await edit.getByLabel("Quota", { exact: true }).fill("");
    await edit.getByRole("switch", { name: "Enabled" }).click();
    await edit.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog", { name: "zoe", exact: true }).getByText("active").waitFor();
    const now = await userNamed("zoe");
    assert.deepEqual([now.enabled, now.quota, now.download_bps], [true, undefined, 20e6]);
    await page.keyboard.press("Escape");

    await page.getByLabel("Search").fill("no such");
    await seen(page, "Nothing matches the search");
    for (const text of ["SECOND", "paid", "ZO"]) {
      await page.getByLabel("Search").fill(text);
      await seen(page, "1 of 2 users");
    }
    await page.getByRole("button", { name: "zoe", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await seen(page, "Nothing matches the search");
    const { users } = await call<{ users: readonly UserJson[] }>("GET", "/api/admin/users");
    assert.deepEqual(
      users.map(({ name }) => name),
      ["seeded"],
    );
    assert.deepEqual(faultsOf(watched), []);
  },
);

/** Over VLESS, as a client of the user who is there from the start; answers with the bytes down. */
async function moveAsSeeded(): Promise<number> {
  const { core } = world.full;
  const client = connect({ port: await core.port("edge"), host: "127.0.0.1" });
  const port = Buffer.alloc(2);
  port.writeUInt16BE(world.origin.port);
  // VERSION | UUID | no addons | TCP | PORT | IPv4 | ADDRESS; the answer begins with a version and no addons
  const uuid = Buffer.from(FULL_UUID.replaceAll("-", ""), "hex");
  client.write(
    Buffer.concat([Buffer.of(0), uuid, Buffer.of(0, 1), port, Buffer.of(1, 127, 0, 0, 1), Buffer.of(1)]),
  );
  let read = -2;
  for await (const chunk of client) {
    read += (chunk as Buffer).length;
    if (read >= 500_000) break;
  }
  return read;
}

test("users are found by a label, and many get one or lose it at once", options, async () => {
  const made: UserJson[] = [];
  for (const name of ["ann", "ben", "cem"]) {
    const { inbounds } = await call<{ inbounds: readonly { revision: number }[] }>(
      "GET",
      "/api/admin/inbounds",
    );
    const labels = name === "cem" ? [] : ["Team"];
    made.push(
      await call("POST", "/api/admin/users", {
        inbound: "edge",
        name,
        labels,
        revision: inbounds[0]?.revision,
      }),
    );
  }
  await using watched = await world.openUsers();
  const { page } = watched;
  await page.getByLabel("Label").selectOption("Team");
  await seen(page, "2 of 4 users");
  await page.getByRole("button", { name: "Choose all shown" }).click();
  await page.getByRole("button", { name: "Add a label: all that are chosen" }).click();
  await page.getByRole("dialog").getByLabel("Label").fill("May");
  await page.keyboard.press("Enter");
  await page.getByText("2 of 2 changes").waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Take a label away: all that are chosen" }).click();
  await page.getByRole("dialog").getByLabel("Label").fill("team");
  await page.keyboard.press("Enter");
  await page.getByText("2 of 2 changes").waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  assert.deepEqual(
    (await Promise.all(["ann", "ben", "cem"].map(userNamed))).map(({ labels }) => labels),
    [["May"], ["May"], undefined],
  );
  for (const { id, name } of made)
    await call("DELETE", `/api/admin/users/${id}?revision=${(await userNamed(name)).revision}`);
  assert.deepEqual(faultsOf(watched), []);
});

test("two people edit one user: what changed is shown, the merge keeps both", options, async () => {
  const { inbounds } = await call<{ inbounds: readonly { revision: number }[] }>(
    "GET",
    "/api/admin/inbounds",
  );
  const draft = { inbound: "edge", name: "max", revision: inbounds[0]?.revision };
  const max = await call<UserJson>("POST", "/api/admin/users", draft);
  await using watched = await world.openUsers();
  const { page } = watched;
  await page.getByRole("button", { name: "max" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Edit" }).click();
  const theirs = { revision: max.revision, name: "maximilian", upload_bps: 1_000_000 };
  await call("PUT", `/api/admin/users/${max.id}`, theirs);
  const edit = page.getByRole("dialog");
  await edit.getByLabel("Name").fill("maxine");
  await edit.getByLabel("Download").fill("5 Mbit/s");
  await edit.getByRole("button", { name: "Save" }).click();
  const merge = page.getByRole("dialog", { name: "Changed meanwhile" });
  await merge.getByText("Upload: nothing → 1 Mbit/s").waitFor();
  await merge.getByLabel("Theirs: maximilian").click();
  await answered(page, "PUT", () => merge.getByRole("button", { name: "Save merged" }).click());
  await merge.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "maximilian" }).waitFor();
  const merged = await call<UserJson & { upload_bps: number }>("GET", `/api/admin/users/${max.id}`);
  assert.deepEqual(
    [merged.name, merged.download_bps, merged.upload_bps],
    ["maximilian", 5_000_000, 1_000_000],
  );

  // an action on an old revision, which another user changed, says so, and goes on
  await page.getByRole("button", { name: "maximilian" }).click();
  const details = page.getByRole("dialog", { name: "maximilian" });
  await details.getByText("5 Mbit/s down").waitFor();
  await page.evaluate(
    "document.hidden === false && Object.defineProperty(document, 'hidden', { value: true })",
  );
  await call("PUT", `/api/admin/users/${max.id}`, { revision: merged.revision, enabled: false });
  await details.getByRole("button", { name: "Reset counters" }).click();
  await merge.getByText("Enabled: true → false").waitFor();
  await answered(page, "POST", () => merge.getByRole("button", { name: "Save merged" }).click());
  await merge.waitFor({ state: "detached" });
  const last = await userNamed("maximilian");
  assert.equal(last.enabled, false);
  await call("DELETE", `/api/admin/users/${last.id}?revision=${last.revision}`);
  assert.deepEqual(faultsOf(watched), []);
});

interface Envelope {
  readonly revision: number;
  readonly config: {
    readonly devices: readonly Readonly<Record<string, unknown>>[];
    readonly targets: readonly unknown[];
  };
}
const POLICIES = "/api/svc/traffic-control/policies";

test("usage by dimension and span, top talkers, and the numbers as a file", options, async () => {
  const tunnel = connect(world.full.mixed, "127.0.0.1");
  tunnel.write(`CONNECT www.test:${world.origin.port} HTTP/1.1\r\nHost: www.test\r\n\r\n`);
  await once(tunnel, "data");
  tunnel.write("x".repeat(1000));
  let arrived = 0;
  tunnel.on("data", (chunk: Buffer) => (arrived += chunk.length));
  while (arrived < 500_000) await once(tunnel, "data");
  await using watched = await world.open("usage");
  const { page } = watched;
  for (const [dimension, name] of [
    ["Total", "All traffic"],
    ["Devices", "Phone"],
    ["Rules", "DOMAINSUFFIX test → Proxy"],
    ["Groups", "Proxy"],
  ] as const) {
    await page.getByRole("group", { name: "By" }).getByRole("button", { name: dimension }).click();
    for (const span of ["Hour", "Day", "Month"]) {
      await page.getByRole("group", { name: "Per" }).getByRole("button", { name: span }).click();
      const plot = page.getByRole("img", { name: new RegExp(`^Usage of ${name}, .*48\\d KiB down`) });
      await plot.waitFor();
    }
  }
  await page.getByRole("group", { name: "By" }).getByRole("button", { name: "Nodes" }).click();
  await page.getByRole("img", { name: /^Usage of DIRECT, .* 0 B down/ }).waitFor();
  await page.getByRole("group", { name: "By" }).getByRole("button", { name: "Total" }).click();
  const talkers = page.getByRole("region", { name: "Top talkers" });
  await talkers.getByRole("button", { name: "Phone" }).click();
  await page.getByRole("img", { name: /^Usage of Phone/ }).waitFor();
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download CSV" }).click(),
  ]);
  assert.equal(file.suggestedFilename(), "phone-month.csv");
  const lines = readFileSync(await file.path(), "utf8")
    .trimEnd()
    .split("\n");
  assert.equal(lines[0], "key,granularity,start,upload_bytes,download_bytes,connections,exceeded_events");
  assert.match(lines[1] ?? "", /^device:phone,month,\d+,1000,500000,1,0$/);
  tunnel.destroy();
  assert.deepEqual(faultsOf(watched), []);
});

test("policies are added, edited, reset and removed; two editors merge", options, async () => {
  await using watched = await world.open("usage");
  const { page } = watched;
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Add a policy" }).click();
  await dialog.getByLabel("What it is about").selectOption("device");
  await dialog.getByLabel("Name").fill("Tablet");
  await dialog.getByLabel("Addresses").fill("192.0.2.300");
  await dialog.getByLabel("Download", { exact: true }).fill("8 Mbit/s");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText(/192\.0\.2\.300/).waitFor();
  await dialog.getByLabel("Addresses").fill("192.0.2.30, 2001:db8::/64");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Edit Tablet" }).waitFor();
  const added = (await call<Envelope>("GET", POLICIES)).config.devices.find(({ name }) => name === "Tablet");
  assert.deepEqual(
    [added?.["download-bps"], added?.["source-cidrs"]],
    [8_000_000, ["192.0.2.30/32", "2001:db8::/64"]],
  );

  await page.getByRole("button", { name: "Edit Phone" }).click();
  await dialog.getByLabel("Name").waitFor();
  const base = await call<Envelope>("GET", POLICIES);
  const devices = base.config.devices.map((device) =>
    device["id"] === "phone" ? { ...device, name: "Their phone", "upload-bps": 1_000_000 } : device,
  );
  await call("PUT", POLICIES, { ...base, config: { ...base.config, devices, targets: [] } });
  await dialog.getByLabel("Name").fill("My phone");
  await dialog.getByLabel("Download", { exact: true }).fill("2 Mbit/s");
  await dialog.getByRole("button", { name: "Save" }).click();
  const merge = page.getByRole("dialog", { name: "Changed meanwhile" });
  await merge.getByText("devices › phone › upload-bps: nothing → 1000000").waitFor();
  await merge.getByText("devices › phone › name was Phone").waitFor();
  await merge.getByRole("button", { name: "Save merged" }).click();
  await page.getByRole("button", { name: "Edit My phone" }).waitFor();
  const { config } = await call<Envelope>("GET", POLICIES);
  const phone = config.devices.find(({ id }) => id === "phone");
  assert.deepEqual(
    [phone?.["name"], phone?.["download-bps"], phone?.["upload-bps"], config.targets],
    ["My phone", 2_000_000, 1_000_000, []],
  );

  await page.getByRole("button", { name: "Reset My phone" }).click();
  await seen(page, "Counters and quota begin anew");
  await page.getByRole("button", { name: "Remove Tablet" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Edit Tablet" }).waitFor({ state: "detached" });
  assert.equal((await call<Envelope>("GET", POLICIES)).config.devices.length, 1);
  await page.getByRole("switch", { name: "Traffic control" }).click();
  await seen(page, "Traffic control is off");
  await page.getByRole("switch", { name: "Traffic control" }).click();
  await page.getByRole("button", { name: "Edit My phone" }).waitFor();
  assert.deepEqual(faultsOf(watched), []);
});

/** Elements that a reader of the page could not name. */
const NAMELESS = `[...document.querySelectorAll("button, a[href], input, select, meter, fieldset")]
  .filter((element) => element.checkVisibility())
  .filter((element) => !(element.getAttribute("aria-label") ?? element.textContent.trim()) && !element.labels?.length)
  .map((element) => element.outerHTML)`;
const STICKS_OUT = `[...document.querySelectorAll("main, dialog[open]")]
  .filter((element) => element.scrollWidth > element.clientWidth).map((element) => element.className || element.tagName)`;

for (const colorScheme of ["light", "dark"] as const)
  test(`both pages and their dialogs at 360 pixels, ${colorScheme}, by the keyboard`, options, async () => {
    const narrow = { width: 360, height: 640, colorScheme };
    const fits = async (page: Page, what: string): Promise<void> => {
      assert.deepEqual(await page.evaluate(STICKS_OUT), [], what);
      assert.deepEqual(await page.evaluate(NAMELESS), [], what);
    };
    {
      await using watched = await world.openUsers(narrow);
      const { page } = watched;
      await fits(page, "users");
      await page.getByRole("button", { name: "seeded" }).focus();
      await page.keyboard.press("Enter");
      const details = page.getByRole("dialog");
      await details.getByText(/^https:/).waitFor();
      await details.getByRole("button", { name: "QR code" }).focus();
      await page.keyboard.press("Enter");
      await fits(page, "details");
      await details.getByRole("button", { name: "Edit" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByLabel("Name").waitFor();
      await fits(page, "form of a user");
      await page.keyboard.press("Escape");
      assert.equal(await page.getByRole("dialog").count(), 0);
      assert.deepEqual(faultsOf(watched), []);
    }
    await using watched = await world.open("usage", narrow);
    const { page } = watched;
    await page.getByRole("button", { name: "Edit All traffic" }).waitFor();
    await fits(page, "usage");
    await page.getByRole("button", { name: "Edit All traffic" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByLabel("Name").waitFor();
    await fits(page, "form of a policy");
    await page.keyboard.press("Escape");
    assert.deepEqual(faultsOf(watched), []);
  });

// Last: tests before it count what all have moved.
test(
  "what a user moved by day and by hour, drawn and as a table, after a restart of the page",
  options,
  async () => {
    assert.equal(await moveAsSeeded(), 500_000);
    const looks = [
      { language: "en", texts: en, width: 1280 },
      { language: "fa", texts: fa, width: 360 },
    ] as const;
    for (const { language, texts, width } of looks) {
      await using watched = await world.openUsers({ width, height: 700 });
      const { page } = watched;
      await page.evaluate(`localStorage.setItem("weir-language", "${language}")`);
      await page.reload();
      await page.getByRole("button", { name: "seeded" }).click();
      const history = page.getByRole("dialog").getByRole("region", { name: texts["user.history"] });
      await history.getByRole("img", { name: texts["usage.dayNote"] }).waitFor();
      await history.getByText(texts["user.historyTable"]).click();
      const table = history.getByRole("table");
      const words = new Words(language, texts);
      for (const span of ["usage.day", "usage.hour"] as const) {
        await history.getByRole("button", { name: texts[span], exact: true }).click();
        await table.getByRole("columnheader", { name: texts[span], exact: true }).waitFor();
        const row = table.getByRole("row").nth(1);
        const cells = await row.getByRole("cell").allInnerTexts();
        const { days } = await call<{ days: readonly DayJson[] }>(
          "GET",
          `/api/admin/users/${(await userNamed("seeded")).id}/history`,
        );
        const { upload_bytes: up = 0, download_bytes: down = 0 } = days[0] ?? {};
        assert.deepEqual([up, down, days.length], [1, 500_000, 1]);
        assert.deepEqual(
          cells,
          [down, up, down + up].map((bytes) => words.bytes(bytes)),
        );
      }
      assert.deepEqual(await page.evaluate(STICKS_OUT), [], language);
      assert.equal(await page.evaluate("document.documentElement.dir"), language === "fa" ? "rtl" : "ltr");
      // Numbers end where the line ends: at the left in a language that is written from the right.
      const [box, head] = [
        await table.boundingBox(),
        await table.getByRole("columnheader").last().boundingBox(),
      ];
      assert.ok(box !== null && head !== null);
      const isAtLeft = Math.abs(head.x - box.x) < 2;
      assert.equal(isAtLeft, language === "fa");
      assert.deepEqual(faultsOf(watched), []);
    }
  },
);

interface DayJson {
  readonly upload_bytes: number;
  readonly download_bytes: number;
}
