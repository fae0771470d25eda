/** REALITY in the words of each family of programs. */
import { createServer } from "node:tls";
import { type Listening, listening, mldsa65Seed, mldsa65Verify, privateKey, publicKey } from "../reality.ts";
import { certificate, NAME } from "./cells.ts";

export interface RealityCell {
  /** What the site chooses, where the client offers it. */
  readonly group: "X25519" | "X25519MLKEM768";
  readonly mldsa65: boolean;
  /** Port of the site; 0 until it runs. */
  readonly dest: number;
}

const SHORT_ID = "0123456789abcdef";

/** The site that servers of a cell stand for; its chain has room for ML-DSA-65. */
export async function openDest({ group }: RealityCell): Promise<Listening> {
  const server = createServer(
    {
      cert: certificate.cert.repeat(12),
      key: certificate.key,
      ALPNProtocols: ["h2", "http/1.1"],
      ecdhCurve: group === "X25519" ? group : `${group}:X25519`,
    },
    (socket) => void socket.on("error", () => {}),
  );
  return await listening(server.on("tlsClientError", () => {}));
}

/** `streamSettings` of Xray. */
export function rayReality({ mldsa65, dest }: RealityCell, side: "server" | "client"): object {
  const own =
    side === "server"
      ? {
          target: `127.0.0.1:${dest}`,
          serverNames: [NAME],
          privateKey,
          shortIds: [SHORT_ID],
          ...(mldsa65 ? { mldsa65Seed } : {}),
        }
      : {
          serverName: NAME,
          password: publicKey,
          shortId: SHORT_ID,
          fingerprint: "chrome",
          ...(mldsa65 ? { mldsa65Verify } : {}),
        };
  return { security: "reality", realitySettings: own };
}

/** `tls` of sing-box, which knows no ML-DSA-65. */
export function singBoxReality({ dest }: RealityCell, side: "server" | "client"): object {
  const common = { enabled: true, server_name: NAME };
  if (side === "server") {
    const handshake = { server: "127.0.0.1", server_port: dest };
    return {
      ...common,
      reality: { enabled: true, handshake, private_key: privateKey, short_id: [SHORT_ID] },
    };
  }
  return {
    ...common,
    utls: { enabled: true, fingerprint: "chrome" },
    reality: { enabled: true, public_key: publicKey, short_id: SHORT_ID },
  };
}

/** Of a listener of weir or mihomo. */
export function clashRealityServer({ mldsa65, dest }: RealityCell): object {
  return {
    "reality-config": {
      dest: `127.0.0.1:${dest}`,
      "private-key": privateKey,
      "short-id": [SHORT_ID],
      "server-names": [NAME],
      ...(mldsa65 ? { "mldsa65-seed": mldsa65Seed } : {}),
    },
  };
}

/** Of a node of weir or mihomo. */
export function clashRealityClient({ group, mldsa65 }: RealityCell): object {
  return {
    "client-fingerprint": "chrome",
    "reality-opts": {
      "public-key": publicKey,
      "short-id": SHORT_ID,
      "support-x25519mlkem768": group === "X25519MLKEM768",
      ...(mldsa65 ? { "mldsa65-verify": mldsa65Verify } : {}),
    },
  };
}
