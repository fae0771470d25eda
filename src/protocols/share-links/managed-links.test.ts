/** The links of the manual, byte for byte. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { UserSupport } from "#core/protocol.ts";
import { managedUsers as anytls } from "#protocols/anytls/managed.ts";
import { inboundSchema as anytlsSchema } from "#protocols/anytls/options.ts";
import { managedUsers as hysteria2 } from "#protocols/hysteria2/managed.ts";
import { inboundSchema as hysteria2Schema } from "#protocols/hysteria2/options.ts";
import { managedUsers as tuic } from "#protocols/tuic/managed.ts";
import { inboundSchema as tuicSchema } from "#protocols/tuic/inbound-options.ts";
import { codePoint } from "../../../test/support/code-points.ts";
import { runs } from "../../../test/support/runs.ts";
import { parseLink, renderLink } from "./index.ts";
import { managedUsers as vless } from "#protocols/vless/managed.ts";
import { inboundSchema as vlessSchema } from "#protocols/vless/options.ts";

const UUID = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";
const TLS = { certificate: "c.pem", "private-key": "k.pem" };
const REALITY = {
  "reality-config": {
    dest: "www.example.net:443",
    "private-key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
    "short-id": ["0123456789abcdef"],
    "server-names": ["www.example.net"],
  },
};
const VISION = "xtls-rprx-vision";

function vlessLink(
  options: object,
  name: string,
  { flow = "", host = "proxy.example.com" } = {},
): string | null {
  const parsed = vlessSchema.parse({ users: [], ...options });
  return vless.shareLink(
    parsed,
    { host, port: 8443 },
    { name: `edge-vless - ${name}`, credential: UUID, flow },
  );
}

function anytlsLink(options: object, name: string, credential: string): string | null {
  const parsed = anytlsSchema.parse({ users: {}, ...options });
  const position = { host: "proxy.example.com", port: 9443 };
  return anytls.shareLink(parsed, position, { name: `edge-anytls - ${name}`, credential, flow: "" });
}

test("svc-admin-api §15.9 vless", () => {
  const at = `vless://${UUID}@proxy.example.com:8443?encryption=none`;
  assert.equal(
    vlessLink(REALITY, "alice", { flow: VISION }),
    `${at}&flow=xtls-rprx-vision&fp=chrome&pbk=j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8&security=reality&sid=0123456789abcdef&sni=www.example.net&type=tcp#edge-vless%20-%20alice`,
  );
  assert.equal(
    vlessLink({ ...TLS, "ws-path": "/ray?ed=2048" }, "alice smith"),
    `${at}&path=%2Fray%3Fed%3D2048&security=tls&sni=proxy.example.com&type=ws#edge-vless%20-%20alice%20smith`,
  );
  assert.equal(
    vlessLink({ ...TLS, "grpc-service-name": "my svc" }, "李 雷"),
    `${at}&security=tls&serviceName=my+svc&sni=proxy.example.com&type=grpc#edge-vless%20-%20%E6%9D%8E%20%E9%9B%B7`,
  );
  assert.equal(
    vlessLink({}, "alice", { host: "2001:db8::1" }),
    `vless://${UUID}@[2001:db8::1]:8443?encryption=none&type=tcp#edge-vless%20-%20alice`,
  );
});

test("svc-admin-api §15.9 vless over XHTTP names path, host and mode", () => {
  const link = (xhttp: object) => vlessLink({ ...TLS, "xhttp-config": xhttp }, "alice");
  const at = `vless://${UUID}@proxy.example.com:8443?encryption=none`;
  const end = "&security=tls&sni=proxy.example.com&type=xhttp#edge-vless%20-%20alice";
  assert.equal(
    link({ path: "/x", host: "cdn.example.com", mode: "auto" }),
    `${at}&host=cdn.example.com&mode=auto&path=%2Fx${end}`,
  );
  assert.equal(link({ mode: "packet-up" }), `${at}&mode=packet-up&path=${end}`);
  assert.equal(link({ path: "/x" }), `${at}&path=%2Fx${end}`);
  const overQuic = vlessLink({ ...TLS, alpn: ["h3"], "xhttp-config": { path: "/x" } }, "alice");
  assert.equal(overQuic, `${at.replace("?", "?alpn=h3&")}&path=%2Fx${end}`);
  assert.deepEqual(parseLink(link({ mode: "packet-up" }) as string)["xhttp-opts"], {
    path: "/",
    mode: "packet-up",
  });
  const uncarried = {
    "no-sse-header": true,
    "sc-max-buffered-posts": 30,
    "sc-max-each-post-bytes": 1_000_000,
    "sc-stream-up-server-secs": "20-80",
  };
  for (const [key, value] of Object.entries(uncarried)) {
    assert.equal(link({ path: "/x", [key]: value }), null, key);
    const ws = vlessLink({ ...TLS, "ws-path": "/w", "xhttp-config": { [key]: value } }, "alice");
    assert.match(ws ?? "none", /type=ws/, "the link is not about the block");
  }
});

test("svc-admin-api §15.9 anytls, and none where nothing hides the traffic", () => {
  assert.equal(
    anytlsLink(TLS, "bob", "p@ss word/1:2?"),
    "anytls://p%40ss%20word%2F1%3A2%3F@proxy.example.com:9443?security=tls&sni=proxy.example.com&type=tcp#edge-anytls%20-%20bob",
  );
  assert.equal(
    Buffer.from(anytlsLink(TLS, "bob", "p@ss word/1:2?") as string).toString("base64"),
    "YW55dGxzOi8vcCU0MHNzJTIwd29yZCUyRjElM0EyJTNGQHByb3h5LmV4YW1wbGUuY29tOjk0NDM/c2VjdXJpdHk9dGxzJnNuaT1wcm94eS5leGFtcGxlLmNvbSZ0eXBlPXRjcCNlZGdlLWFueXRscyUyMC0lMjBib2I=",
  );
  assert.equal(
    anytlsLink(REALITY, "bob #1", "s3cret"),
    "anytls://s3cret@proxy.example.com:9443?fp=chrome&pbk=j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8&security=reality&sid=0123456789abcdef&sni=www.example.net&type=tcp#edge-anytls%20-%20bob%20%231",
  );
  assert.equal(anytlsLink({ "allow-insecure": true }, "bob", "x"), null);
});

test("hysteria2 and tuic: what links of others say of a node", () => {
  const at = { host: "proxy.example.com", port: 443 };
  const shown = (credential: string) => ({ name: "edge - ada", credential, flow: "" });
  const hy = hysteria2Schema.parse({ users: {}, ...TLS, obfs: "salamander", "obfs-password": "p&q" });
  assert.equal(
    hysteria2.shareLink(hy, at, shown("a:b")),
    "hysteria2://a%3Ab@proxy.example.com:443?obfs=salamander&obfs-password=p%26q&sni=proxy.example.com#edge%20-%20ada",
  );
  assert.equal(hysteria2.shareLink({ ...hy, alpn: ["other"] }, at, shown("x")), null, "no link can say it");
  const quick = tuicSchema.parse(TLS);
  const link = tuic.shareLink(quick, at, shown(`${UUID}:a:b`)) as string;
  assert.equal(
    link,
    `tuic://${UUID}:a%3Ab@proxy.example.com:443?alpn=h3&sni=proxy.example.com&udp_relay_mode=native#edge%20-%20ada`,
  );
  const { uuid, password, sni } = parseLink(link);
  assert.deepEqual([uuid, password, sni], [UUID, "a:b", "proxy.example.com"]);
});

test("every character is escaped as the specification says", () => {
  const link = anytlsLink(TLS, "!()*'é", "~*'()!$&+,;=/") as string;
  assert.match(link, /^anytls:\/\/~%2A%27%28%29%21\$&\+,;=%2F@/);
  assert.match(link, /#edge-anytls%20-%20!\(\)\*%27%C3%A9$/);
});

test("credentials are made, recognised and kept apart", () => {
  for (const support of [vless, anytls, hysteria2, tuic] satisfies UserSupport[]) {
    const made = support.makeCredential();
    assert.notEqual(support.identify(made), null);
    assert.notEqual(made, support.makeCredential());
  }
  assert.equal(vless.identify(UUID), vless.identify(UUID.toUpperCase().replaceAll("-", "")));
  for (const wrong of ["", "alice", `${UUID}0`, UUID.replace("-", "")])
    assert.equal(vless.identify(wrong), null, wrong);
  assert.deepEqual(
    vless.written(vlessSchema.parse({ users: [{ uuid: "example" }] })).map(({ credential }) => credential),
    ["feb54431-301b-52bb-a6dd-e1e93e81bb9e"],
  );
});

test("whatever a user is called, the link reads back as the same user", () => {
  const text = fc.oneof(
    fc.constantFrom("#", "\"'`", "a\nb", "😀 李", "<b>&amp;</b>", "%41+%2F", "a b", "?x=y#z", "\u202e"),
    fc.string({ unit: codePoint, minLength: 1, maxLength: 40 }),
  );
  const name = fc
    .tuple(text, text)
    .map((parts) => parts.join("").trim())
    .filter((one) => one !== "");
  const position = { host: "proxy.example.com", port: 8443 };
  fc.assert(
    fc.property(name, fc.uuid(), text, (shown, uuid, password) => {
      const parsed = vlessSchema.parse({ users: [], ...TLS });
      const link = vless.shareLink(parsed, position, {
        name: shown,
        credential: uuid,
        flow: VISION,
      }) as string;
      const node = parseLink(link);
      assert.deepEqual(
        [node["name"], node["uuid"], node["server"], node["port"], node["flow"], node["servername"]],
        [shown, uuid, position.host, position.port, VISION, position.host],
      );
      assert.deepEqual(parseLink(renderLink(node) as string), node);
      const other = anytlsSchema.parse({ users: {}, ...TLS });
      const user = { name: shown, credential: password, flow: "" };
      const second = parseLink(anytls.shareLink(other, position, user) as string);
      assert.deepEqual(
        [second["name"], second["password"], second["port"]],
        [shown, password, position.port],
      );
      assert.deepEqual(parseLink(renderLink(second) as string), second);
      const quick = hysteria2.shareLink(hysteria2Schema.parse({ users: {}, ...TLS }), position, user);
      assert.equal(parseLink(quick as string)["password"], password);
      const both = { ...user, credential: `${uuid}:${password}` };
      const third = parseLink(tuic.shareLink(tuicSchema.parse(TLS), position, both) as string);
      assert.deepEqual([third["uuid"], third["password"], third["name"]], [uuid, password, shown]);
    }),
    { numRuns: runs(1000) },
  );
});
