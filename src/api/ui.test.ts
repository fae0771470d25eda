import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { FastifyInstance } from "fastify";
import { apiApp } from "../../test/support/api-app.ts";

let top = "";
let app: FastifyInstance;

before(async () => {
  top = await mkdtemp(join(tmpdir(), "weir-ui-"));
  const folder = join(top, "ui");
  await mkdir(join(folder, "assets", "deep"), { recursive: true });
  await mkdir(join(top, "ui-other"));
  const files = {
    "secret.txt": "SECRET",
    "ui-other/secret.txt": "SECRET",
    "ui/.env": "SECRET",
    "ui/index.html": "<title>home</title>",
    "ui/assets/app.js": "export {}",
    "ui/assets/deep/index.html": "deep",
    "ui/assets/100% ü.svg": "<svg/>",
    "ui/empty.css": "",
    "ui/blob": "?",
  };
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(top, name), text)));
  await symlink(join(top, "secret.txt"), join(folder, "link.txt"));
  await symlink(top, join(folder, "out"));
  await symlink("assets", join(folder, "inside"));
  await symlink("loop", join(folder, "loop"));
  app = (await apiApp({ secret: "s", uiFolder: folder })).app;
});

after(() => rm(top, { recursive: true }));

test("files, folders with an index, types, and no secret", async () => {
  const expected: readonly (readonly [string, number, string])[] = [
    ["/ui/", 200, "text/html"],
    ["/ui/index.html", 200, "text/html"],
    ["/ui/assets/app.js", 200, "text/javascript"],
    ["/ui/inside/app.js", 200, "text/javascript"],
    ["/ui/assets/deep/", 200, "text/html"],
    ["/ui/assets/100%25%20%C3%BC.svg", 200, "image/svg+xml"],
    ["/ui/empty.css", 200, "text/css"],
    ["/ui/blob", 200, "application/octet-stream"],
    ["/ui/?token=x#frag", 200, "text/html"],
    ["/ui/nothing.js", 404, "text/plain"],
    ["/ui/assets/", 404, "text/plain"],
    ["/ui/loop", 404, "text/plain"],
  ];
  for (const [url, status, type] of expected) {
    const answer = await app.inject(url);
    assert.equal(answer.statusCode, status, url);
    assert.ok(String(answer.headers["content-type"]).startsWith(type), url);
  }
  assert.equal((await app.inject("/ui/assets/app.js")).headers["x-content-type-options"], "nosniff");
  for (const [url, location] of [
    ["/ui", "/ui/"],
    ["/ui/assets/deep", "/ui/assets/deep/"],
  ] as const) {
    const answer = await app.inject(url);
    assert.deepEqual([answer.statusCode, answer.headers.location], [307, location]);
  }
});

const UP = [
  "..",
  "%2e%2e",
  "%2E.",
  ".%2e",
  "..%00",
  "..;",
  "....",
  "%c0%ae%c0%ae",
  "%252e%252e",
  "%uff0e%uff0e",
];
const FORMS = [
  ...UP.flatMap((up) => [`/ui/${up}/secret.txt`, `/ui/assets/${up}/${up}/secret.txt`]),
  "/ui/../secret.txt",
  "/ui/..%2fsecret.txt",
  "/ui/..%2Fui-other%2Fsecret.txt",
  "/ui/..%5csecret.txt",
  "/ui/..\\secret.txt",
  "/ui/%5c..%5csecret.txt",
  "/ui//etc/passwd",
  "/ui/%2fetc%2fpasswd",
  "/ui///../secret.txt",
  "/ui/./../secret.txt",
  "/ui/link.txt",
  "/ui/out/secret.txt",
  "/ui/out/ui-other/secret.txt",
  "/ui/.env",
  "/ui/%2eenv",
  "/ui/secret.txt%00.html",
  "/ui/C:%5csecret.txt",
  "/ui/index.html::$DATA",
  "/ui../secret.txt",
  "/ui/index.html/../../secret.txt",
];

test(`${FORMS.length} ways to climb out find nothing`, async () => {
  for (const url of FORMS) {
    const answer = await app.inject(url);
    assert.doesNotMatch(answer.body, /SECRET|root:/, url);
    assert.ok([307, 400, 404].includes(answer.statusCode), `${url}: ${answer.statusCode}`);
  }
});

test("without a folder there is no dashboard", async () => {
  const bare = (await apiApp()).app;
  for (const url of ["/ui", "/ui/", "/ui/x"]) assert.equal((await bare.inject(url)).statusCode, 404);
});

test("the built-in one has a strict policy on every file; where there is no first page, a sentence says why", async () => {
  const ours = (await apiApp({ uiFolder: join(top, "ui"), uiIsOurs: true })).app;
  for (const url of ["/ui/", "/ui/assets/app.js", "/ui/empty.css"]) {
    const policy = String((await ours.inject(url)).headers["content-security-policy"]);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /, url);
    assert.doesNotMatch(policy, /unsafe|\*|data:|https?:/);
  }
  assert.equal(
    (await app.inject("/ui/")).headers["content-security-policy"],
    undefined,
    "others may need more",
  );
  const gone = join(top, "not-there");
  for (const [uiIsOurs, text] of [
    [true, /has not been built: `npm start`/],
    [false, /POST \/upgrade\/ui/],
  ] as const) {
    const answer = await (await apiApp({ uiFolder: gone, uiIsOurs })).app.inject("/ui/");
    assert.equal(answer.statusCode, 404);
    assert.match(answer.body, text);
  }
});
