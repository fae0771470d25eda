/** A listener over QUIC of the real program: a certificate that is replaced is shown to who comes next. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate } from "../support/certificate.ts";
import { freePort } from "../support/peer.ts";
import { dialQuic } from "../support/quic-dial.ts";
import { openQuicClientTls } from "../support/quic-tls.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

test("new files of a certificate are in force behind a reload, and connections stay", async () => {
  const [first, second] = [
    makeCertificate({ names: ["server.test"] }),
    makeCertificate({ names: ["server.test"] }),
  ];
  const port = await freePort();
  const write = (home: string, { cert, key }: ReturnType<typeof makeCertificate>): void => {
    writeFileSync(join(home, "cert.pem"), cert);
    writeFileSync(join(home, "key.pem"), key);
  };
  const config = `
listeners:
  - { name: hy, type: hysteria2, listen: 127.0.0.1, port: ${port}, users: { ann: password }, certificate: cert.pem, private-key: key.pem }
rules: ["MATCH,DIRECT"]
`;
  await using core = await startCore(config, { seed: (home) => write(home, first) });
  const dial = async ({ fingerprint }: ReturnType<typeof makeCertificate>) =>
    dialQuic(port, { openTls: await openQuicClientTls({ fingerprint }) });
  const before = await dial(first);
  await assert.rejects(dial(second));
  write(core.home, second);
  await core.reload();
  await until("the new certificate is shown", async () =>
    dial(second).then(
      (client) => (client.close(0), true),
      () => false,
    ),
  );
  await assert.rejects(dial(first));
  assert.equal(before.connection.isClosed, false);
  before.close(0);
});
