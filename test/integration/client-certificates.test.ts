/** Listeners whose clients have to show a certificate, with users who say what they want at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "node:tls";
import { COMMAND_CONNECT, encodeRequest, keyOf } from "#protocols/trojan/wire.ts";
import { answerTo } from "../support/client.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { certificate, password, serverTls } from "../support/tls-sides.ts";

test("a user who has to show a certificate is let in with it alone", async () => {
  const [port, free] = (await freePorts(2)) as [number, number];
  await using origin = await openTcpOrigin(echo);
  const listener = {
    type: "trojan",
    listen: "127.0.0.1",
    users: [{ username: "ada", password }],
    ...serverTls,
  };
  const asks = { "client-auth-type": "require-any" };
  const listeners = [
    { ...listener, name: "asks", port, ...asks },
    { ...listener, name: "free", port: free },
  ];
  await using _ = await startCore(JSON.stringify({ rules: ["MATCH,DIRECT"], listeners }));
  const request = encodeRequest(keyOf(password), {
    command: COMMAND_CONNECT,
    destination: origin.destination,
  });
  const said = Buffer.concat([request, Buffer.from("ping")]);
  const tries = async (at: number, more: object): Promise<string> => {
    const client = connect({ port: at, host: "127.0.0.1", rejectUnauthorized: false, ...more });
    client.on("error", () => {});
    const heard = await answerTo(client, said, 4);
    client.destroy();
    return heard;
  };
  const own = { cert: certificate.cert, key: certificate.key };
  for (let round = 0; round < 10; round++) {
    assert.equal(await tries(free, {}), "ping");
    assert.equal(await tries(port, {}), "");
    assert.equal(await tries(port, own), "ping");
  }
});
