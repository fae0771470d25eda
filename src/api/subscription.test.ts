import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { SILENT, type LogText } from "#core/log.ts";
import type { SubscriptionView, UsersControl } from "#core/users.ts";
import { clientForms, parseLink } from "#protocols/share-links/index.ts";
import { apiApp } from "../../test/support/api-app.ts";
import { linkList, mihomoProfile, singBoxProfile } from "./subscription-formats.ts";
import { subscriptionRoutes } from "./subscription.ts";

const LINK =
  "vless://6d27a52f-4539-4ac1-9bd4-b8e05e53c197@proxy.example.com:8443?encryption=none&security=tls&serviceName=my+svc&sni=proxy.example.com&type=grpc#edge%20-%20%3Cb%3E";
const VIEW: SubscriptionView = {
  url: "https://proxy.example.com/sub/svc/good",
  link: LINK,
  ...clientForms(LINK),
  byAgent: false,
  title: "edge - <b>",
  status: "active",
  uploadBytes: 100,
  downloadBytes: 2000,
  totalBytes: 0,
  expiresAtMs: null,
};

async function served(view: SubscriptionView = VIEW) {
  const admin = { subscription: (token: string) => (token === "good" ? view : null) };
  const users = { admin } as unknown as UsersControl;
  const { app } = await apiApp({ secret: "s", mounts: () => subscriptionRoutes(users, SILENT) });
  return async (path: string, method: "GET" | "HEAD" = "GET") =>
    await app.inject({ method, url: `/sub/svc/${path}` });
}

test("svc-admin-api §10 a fault while the answer is made is the one 404, and the token is not in the log", async () => {
  const lines: string[] = [];
  const log = { ...SILENT, error: (text: LogText) => void lines.push(String(text)) };
  const view = { ...VIEW, title: undefined } as unknown as SubscriptionView;
  const users = { admin: { subscription: () => view } } as unknown as UsersControl;
  const { app } = await apiApp({ secret: "s", mounts: () => subscriptionRoutes(users, log) }, { log });
  for (const format of ["base64", "html"]) {
    const { statusCode, headers, body } = await app.inject(`/sub/svc/good?format=${format}`);
    assert.deepEqual([statusCode, body], [404, "404 page not found\n"], format);
    assert.equal(headers["cache-control"], "no-store");
  }
  assert.equal(lines.length, 2);
  assert.doesNotMatch(lines.join(), /good/);
});

const EXTRA = ["subscription-userinfo", "profile-update-interval", "profile-title"];

test("without limits and without a format the answer is the contract's, and has no header more", async () => {
  const ask = await served();
  const { statusCode, headers, body } = await ask("good");
  assert.deepEqual([statusCode, body], [200, Buffer.from(LINK).toString("base64")]);
  assert.equal(headers["content-type"], "text/plain; charset=utf-8");
  assert.equal(headers["cache-control"], "no-store");
  for (const name of EXTRA) assert.equal(headers[name], undefined);
  const head = await ask("good", "HEAD");
  assert.deepEqual([head.body, head.headers["content-length"]], ["", `${body.length}`]);
});

test("with a quota or an end every form says what is used", async () => {
  const ask = await served({
    ...VIEW,
    totalBytes: 5000,
    expiresAtMs: 1_785_312_000_999,
    status: "limited",
  });
  for (const path of ["good", "good?format=base64", "good?format=mihomo", "good?format=html"]) {
    const { headers } = await ask(path);
    assert.equal(
      headers["subscription-userinfo"],
      "upload=100; download=2000; total=5000; expire=1785312000",
      path,
    );
    assert.equal(headers["profile-update-interval"], "12");
    assert.equal(headers["profile-title"], `base64:${Buffer.from("edge - <b>").toString("base64")}`);
  }
  assert.match((await ask("good?format=html")).body, /quota used up.*2\.8 KiB of 4\.9 KiB/s);
});

test("whatever is wrong with a token, in whatever form it is asked for, the answer is one", async () => {
  const ask = await served();
  const formats = ["", "?format=base64", "?format=mihomo", "?format=sing-box", "?format=html", "?format=x"];
  const all = await Promise.all(formats.map((format) => ask(`bad${format}`)));
  const unknown = await ask("good?format=nonsense");
  const seen = [...all, unknown].map(({ statusCode, body, headers }) =>
    JSON.stringify([statusCode, body, { ...headers, date: "" }]),
  );
  assert.equal(new Set(seen).size, 1);
  assert.equal(unknown.statusCode, 404);
});

test("names of Object are no formats", async () => {
  const ask = await served();
  for (const name of ["constructor", "__proto__", "toString"])
    assert.equal((await ask(`good?format=${name}`)).statusCode, 404);
});

test("a list has blanks that every client reads, and ends its line", () => {
  const text = Buffer.from(linkList(VIEW), "base64").toString();
  assert.equal(text, `${LINK.replace("my+svc", "my%20svc")}\n`);
  assert.deepEqual(parseLink(text), VIEW.node);
});

test("the YAML profile holds the node as it is, in a group, and ends with it", () => {
  const profile = parse(mihomoProfile(VIEW) ?? "") as Record<string, unknown>;
  assert.deepEqual(profile["proxies"], [VIEW.node]);
  assert.deepEqual(profile["proxy-groups"], [
    { name: "PROXY", type: "select", proxies: ["edge - <b>", "DIRECT"] },
  ]);
  assert.deepEqual(profile["rules"], ["MATCH,PROXY"]);
});

test("mihomo gets no AnyTLS with REALITY, which it would log in with at the borrowed site", async () => {
  const link =
    "anytls://pw@h.example:443?fp=chrome&pbk=KEY&security=reality&sid=ab&sni=s.example&type=tcp#any";
  const reality = { ...VIEW, link, ...clientForms(link) };
  assert.equal(mihomoProfile(reality), null);
  assert.notEqual(singBoxProfile(reality, false), null);
  const profile = parse(mihomoProfile({ ...reality, further: [VIEW] }) ?? "") as Record<string, unknown>;
  assert.deepEqual(profile["proxies"], [VIEW.node]);
  const page = await (await served(reality))("good?format=html");
  assert.doesNotMatch(page.body, /clash:/);
  const plain = link.replace(/pbk.*sni/, "security=tls&sni");
  assert.notEqual(mihomoProfile({ ...VIEW, link: plain, ...clientForms(plain) }), null);
});

test("a name with signs that YAML's readers refuse is in the YAML profile all the same", () => {
  const name = "edge - a\u2028b\u007fc\nd";
  const text = mihomoProfile({ ...VIEW, mihomo: { ...VIEW.node, name } }) ?? "";
  assert.doesNotMatch(text, /[\u2028\u007f]/);
  const profile = parse(text) as Record<string, unknown>;
  assert.deepEqual(profile["proxies"], [{ ...VIEW.node, name }]);
});

const outboundOf = (link: string) => {
  const text = singBoxProfile({ ...VIEW, link, ...clientForms(link) }, false);
  return text === null ? null : (JSON.parse(text) as { outbounds: Record<string, unknown>[] }).outbounds[0];
};

test("the JSON profile says the node in its own words", () => {
  const base = "vless://id@h.example:443";
  const common = { type: "vless", tag: "n", server: "h.example", server_port: 443, uuid: "id" };
  assert.deepEqual(outboundOf(`${base}?encryption=none&type=tcp#n`), common);
  assert.deepEqual(
    outboundOf(
      `${base}?encryption=none&flow=xtls-rprx-vision&fp=chrome&pbk=KEY&security=reality&sid=ab&sni=s.example&type=tcp#n`,
    ),
    {
      ...common,
      flow: "xtls-rprx-vision",
      tls: {
        enabled: true,
        server_name: "s.example",
        utls: { enabled: true, fingerprint: "chrome" },
        reality: { enabled: true, public_key: "KEY", short_id: "ab" },
      },
    },
  );
  const tls = { enabled: true, server_name: "h.example" };
  assert.deepEqual(outboundOf(`${base}?security=tls&sni=h.example&type=ws&path=%2Fray%3Fed%3D2048#n`), {
    ...common,
    tls,
    transport: {
      type: "ws",
      path: "/ray",
      max_early_data: 2048,
      early_data_header_name: "Sec-WebSocket-Protocol",
    },
  });
  assert.deepEqual(outboundOf(`${base}?security=tls&sni=h.example&type=http&path=%2Fx&host=a.example#n`), {
    ...common,
    tls,
    transport: { type: "http", path: "/x", host: ["a.example"] },
  });
  assert.equal(outboundOf(`${base}?security=tls&type=xhttp&path=%2Fx#n`), null, "it has no such transport");
  assert.deepEqual(outboundOf("anytls://pw@h.example:443?security=tls&sni=h.example&type=tcp#n"), {
    type: "anytls",
    tag: "n",
    server: "h.example",
    server_port: 443,
    password: "pw",
    tls,
  });
});

test("sing-box's own apps, which make a VPN of a TUN alone, get one, with names that go to the node; programs get a port", async () => {
  const { app } = await apiApp({
    secret: "s",
    mounts: () =>
      subscriptionRoutes({ admin: { subscription: () => VIEW } } as unknown as UsersControl, SILENT),
  });
  const profileFor = async (agent: string) => {
    const headers = { "user-agent": agent };
    const { body } = await app.inject({ url: "/sub/svc/good?format=sing-box", headers });
    return JSON.parse(body) as { inbounds: { type: string }[]; dns: object; route: object };
  };
  for (const app of ["SFA", "SFI", "SFM", "SFT"]) {
    const { inbounds, dns, route } = await profileFor(`${app}/1.12.12 (561; sing-box 1.12.12)`);
    assert.deepEqual(
      inbounds.map(({ type }) => type),
      ["tun", "mixed"],
      app,
    );
    assert.match(JSON.stringify(dns), /"fakeip"/);
    assert.match(JSON.stringify(route), /"hijack-dns"/);
  }
  for (const agent of ["sing-box 1.12.12", "curl/8", ""]) {
    const { inbounds, dns } = await profileFor(agent);
    assert.deepEqual(
      inbounds.map(({ type }) => type),
      ["mixed"],
      agent,
    );
    assert.deepEqual(dns, { servers: [{ type: "local", tag: "local" }] });
  }
});

test("the page escapes names, loads nothing, and has two codes", async () => {
  const ask = await served();
  const { body, headers } = await ask("good?format=html");
  assert.ok(!body.includes("<b>") && !/<script|<img|<link|src=/i.test(body));
  assert.match(String(headers["content-security-policy"]), /^default-src 'none'/);
  assert.equal(headers["referrer-policy"], "no-referrer");
  assert.equal(body.split("<svg").length - 1, 2);
  const long = await served({ ...VIEW, link: `${LINK}${"x".repeat(4000)}` });
  assert.equal((await long("good?format=html")).body.split("<svg").length - 1, 1, "too long for a code");
});

test("by the client's name only where that is switched on, and never against a format that is named", async () => {
  const served = (byAgent: boolean, view = VIEW) => {
    const users = { admin: { subscription: () => ({ ...view, byAgent }) } } as unknown as UsersControl;
    return apiApp({ secret: "s", mounts: () => subscriptionRoutes(users, SILENT) });
  };
  const typeFor = async (agent: string, byAgent = true, query = "", view = VIEW, accept = "*/*") => {
    const { app } = await served(byAgent, view);
    const headers = { "user-agent": agent, accept };
    const { statusCode, headers: answered } = await app.inject({ url: `/sub/svc/good${query}`, headers });
    assert.equal(statusCode, 200, agent);
    return String(answered["content-type"]).split(";")[0];
  };
  for (const [agent, type] of [
    ["clash-verge/v2.0", "text/yaml"],
    ["mihomo/1.19", "text/yaml"],
    ["SFA/1.12 (Build 1; sing-box 1.12)", "application/json"],
    ["v2rayNG/1.9", "text/plain"],
    ["Mozilla/5.0", "text/plain"],
    ["", "text/plain"],
  ] as const) {
    assert.equal(await typeFor(agent), type, agent);
    assert.equal(await typeFor(agent, false), "text/plain", agent);
  }
  assert.equal(await typeFor("Mozilla/5.0", true, "", VIEW, "text/html,*/*"), "text/html");
  assert.equal(await typeFor("mihomo/1.19", true, "?format=base64"), "text/plain");
  const plainOnly = { ...VIEW, node: null, mihomo: null, singBox: null };
  assert.equal(
    await typeFor("mihomo/1.19", true, "", plainOnly),
    "text/plain",
    "what cannot be said is the link",
  );
});

test("the page speaks the language that is wanted, and offers the others", async () => {
  const ask = await served({ ...VIEW, totalBytes: 5000, expiresAtMs: 1_785_312_000_000 });
  const page = async (path: string) => (await ask(path)).body;
  assert.match(await page("good?format=html"), /lang="en".*Left<.*2026-07-29 08:00 UTC/s);
  const persian = await page("good?format=html&lang=fa");
  assert.match(persian, /lang="fa" dir="rtl".*باقی‌مانده<.*۲٫۸ KiB از ۴٫۹ KiB.*۷ مرداد ۱۴۰۵/s);
  assert.match(persian, /href="\?format=html&#38;lang=ru" lang="ru" hreflang="ru">Русский/);
});

test("the page has a button for each client that can read one of the forms", async () => {
  const hrefs = (body: string) =>
    [...body.matchAll(/class="import" href="([^"]*)"/g)].map(([, href]) => href);
  const all = hrefs((await (await served())("good?format=html")).body);
  const address = "https%3A%2F%2Fproxy.example.com%2Fsub%2Fsvc%2Fgood";
  assert.equal(all.length, 6);
  assert.equal(all[0], `clash://install-config?url=${address}%3Fformat%3Dmihomo&#38;name=edge%20-%20%3Cb%3E`);
  assert.equal(
    all[1],
    `sing-box://import-remote-profile?url=${address}%3Fformat%3Dsing-box#edge%20-%20%3Cb%3E`,
  );
  const none = await (await served({ ...VIEW, node: null, mihomo: null, singBox: null }))("good?format=html");
  assert.equal(hrefs(none.body).length, 4, "no profile, no button for it");
});

test("a fault of the core tells nothing, and the token is not in the log", async () => {
  const logged: string[] = [];
  const log = { ...SILENT, error: (text: unknown) => void logged.push(String(text)) };
  const subscription = () => {
    throw new Error("no good");
  };
  const users = { admin: { subscription } } as unknown as UsersControl;
  const { app } = await apiApp({ mounts: () => subscriptionRoutes(users, log) });
  const { statusCode, body, headers } = await app.inject({ url: "/sub/svc/hunter2" });
  assert.deepEqual([statusCode, body, headers["cache-control"]], [404, "404 page not found\n", "no-store"]);
  assert.deepEqual(logged, ["subscription: no good"]);
});
