/** A release folder on a web server, with a key of its own, and an installation that it can update: programs are scripts. */
import { createHash, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { SYSTEM_RESOLVER } from "#net/dial/system-resolver.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { findInstallation, type Installation } from "#update/installation.ts";
import type { Manifest } from "#update/manifest.ts";
import { openReleaseSource } from "#update/settings.ts";
import type { ReleaseSource } from "#update/release-source.ts";
import { tarGz, type Member } from "./archives.ts";

export const PLATFORM = `${process.platform}-${process.arch}`;

/** As the build's, but for a program that says its version, and of a configuration what `check` does. */
export function membersOf(version: string, check = "exit 0"): readonly Member[] {
  const base = `weir-${version}-${PLATFORM}`;
  const program = `#!/bin/sh\ncase $1 in -v) echo "Weir Meta ${version} here" ;; -t) ${check} ;; esac\n`;
  return [
    { name: `${base}/`, folder: true },
    { name: `${base}/weir`, text: program, mode: 0o100755 },
    { name: `${base}/version.txt`, text: `${version}\n` },
    { name: `${base}/lib/part.cjs`, text: "part" },
  ];
}

export class ReleaseFolder implements AsyncDisposable {
  /** PEM. */
  readonly publicKey: string;
  /** By path. A function answers itself. */
  readonly files = new Map<string, Uint8Array | RequestListener>();
  readonly #server: Server;
  readonly #key: KeyObject;

  private constructor(server: Server, key: KeyObject, publicKey: string) {
    this.#server = server;
    this.#key = key;
    this.publicKey = publicKey;
  }

  static async open(): Promise<ReleaseFolder> {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const server = createServer((request, response) => {
      const found = folder.files.get(request.url ?? "");
      if (typeof found === "function") return found(request, response);
      if (found === undefined) response.writeHead(404);
      response.end(found);
    });
    const folder = new ReleaseFolder(
      server,
      privateKey,
      publicKey.export({ type: "spki", format: "pem" }).toString(),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return folder;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/r`;
  }

  /** Puts `archive` there as that of `version`, in a manifest with `changes`. */
  publish(version: string, archive: Buffer, changes: Partial<Manifest> = {}): void {
    const name = `weir-${version}-${PLATFORM}.tar.gz`;
    const sha256 = createHash("sha256").update(archive).digest("hex");
    const files = { [PLATFORM]: { name, size: archive.length, sha256 } };
    this.sign(JSON.stringify({ format: "weir-release-1", version, files, ...changes }));
    this.files.set(`/r/${name}`, archive);
  }

  sign(manifest: string): void {
    this.files.set("/r/manifest.json", Buffer.from(manifest));
    this.files.set("/r/manifest.json.sig", sign(null, Buffer.from(manifest), this.#key));
  }

  source(publicKey = this.publicKey): Promise<ReleaseSource> {
    const way = {
      dialer: openDirectDialer({ resolver: SYSTEM_RESOLVER }),
      trust: DEFAULT_TRUST,
      userAgent: "weir/test",
      timeoutMs: 2_000,
      archiveTimeoutMs: 2_000,
    };
    return openReleaseSource({ url: this.url, publicKey }, { readPem: async (text) => text }, way);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A folder with a version in it and the link that leads there. */
export function installed(version: string): Installation & Disposable {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), "weir-update-")));
  const folder = join(parent, `weir-${version}`);
  placeBuild(folder, version);
  symlinkSync(`weir-${version}`, join(parent, "weir"));
  return {
    ...findInstallation(folder, version),
    [Symbol.dispose]: () => rmSync(parent, { recursive: true }),
  };
}

export function placeBuild(folder: string, version: string): void {
  mkdirSync(folder);
  writeFileSync(join(folder, "weir"), "#!/bin/sh\nexit 0\n");
  chmodSync(join(folder, "weir"), 0o755);
  writeFileSync(join(folder, "version.txt"), `${version}\n`);
}

export function archiveOf(version: string, more: readonly Member[] = [], check?: string): Buffer {
  return tarGz([...membersOf(version, check), ...more]);
}
