// Makes a Debian package of an assembled build.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ARCHITECTURES = { "linux-x64": "amd64", "linux-arm64": "arm64" };

/** Where the shells of Debian look for completions. */
const COMPLETIONS = {
  bash: "usr/share/bash-completion/completions/weir",
  zsh: "usr/share/zsh/vendor-completions/_weir",
  fish: "usr/share/fish/vendor_completions.d/weir.fish",
};

/** What the pinned runtime is linked with, and what the maintainer scripts call. */
const DEPENDS = "libc6 (>= 2.28), libstdc++6, libgcc-s1, libatomic1, passwd, init-system-helpers";

/** Whether there are packages for `platform`, and the means to make one here. */
export function canMakeDeb(platform) {
  if (ARCHITECTURES[platform] === undefined) return false;
  try {
    execFileSync("dpkg-deb", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Makes `weir_VERSION_ARCHITECTURE.deb` in `out` of the build in `folder`, and answers with its name. */
export function makeDeb({ platform, folder, version, out }) {
  const tree = mkdtempSync(join(tmpdir(), "weir-deb-"));
  try {
    const architecture = ARCHITECTURES[platform];
    placeProgram(tree, folder, version);
    placeManual(tree, folder);
    const conffile = placeConfiguration(tree);
    // Whatever the umask of the checkout was.
    execFileSync("chmod", ["-R", "u=rwX,go=rX", tree]);
    chmodSync(join(tree, "etc/weir"), 0o750);
    chmodSync(join(tree, conffile), 0o640);
    placeControl(tree, { architecture, conffile, version: debianVersion(version) });
    const file = `weir_${debianVersion(version)}_${architecture}.deb`;
    const options = ["--root-owner-group", "-Zzstd", "-z9", "--build"];
    execFileSync("dpkg-deb", [...options, tree, join(out, file)], { stdio: ["ignore", "ignore", "inherit"] });
    return file;
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

/** `0.1.0-20261125-abcdef` as `0.1.0+20261125.abcdef`: a hyphen would begin Debian's revision, and a digit comes first. */
export function debianVersion(version) {
  const [first, ...others] = version.split("-");
  const text = others.length === 0 ? first : `${first}+${others.join(".")}`;
  return /^\d/.test(text) ? text : `0~${text}`;
}

function placeProgram(tree, folder, version) {
  const home = join(tree, "usr/lib/weir");
  mkdirSync(home, { recursive: true });
  for (const part of ["weir", "lib", "version.txt"])
    cpSync(join(folder, part), join(home, part), { recursive: true });
  mkdirSync(join(tree, "usr/bin"));
  symlinkSync("../lib/weir/weir", join(tree, "usr/bin/weir"));
  const unit = readFileSync(join(root, "deploy/weir.service"), "utf8");
  const [, ...lines] = unit.replaceAll("/opt/weir/weir", "/usr/bin/weir").split("\n"); // the first says where to copy it to
  write(tree, "usr/lib/systemd/system/weir.service", lines.join("\n"));
  write(tree, "usr/share/man/man1/weir.1.gz", gzipSync(said(version, "man"), { level: 9 }));
  for (const [shell, path] of Object.entries(COMPLETIONS))
    write(tree, path, said(version, "completion", shell));
}

/** What the sources print: a runtime of another architecture cannot be run here. */
function said(version, ...command) {
  const flags = ["--disable-warning=ExperimentalWarning", join(root, "src/boot.mjs")];
  return execFileSync(process.execPath, [...flags, ...command], { encoding: "utf8" }).replace(
    "weir dev",
    `weir ${version}`,
  );
}

function placeManual(tree, folder) {
  const doc = join(tree, "usr/share/doc/weir");
  mkdirSync(doc, { recursive: true });
  for (const part of ["docs", "examples", "deploy", "SECURITY.md"])
    cpSync(join(folder, part), join(doc, part), { recursive: true });
  const gzip = (name) => gzipSync(readFileSync(join(folder, name)), { level: 9 });
  write(tree, "usr/share/doc/weir/changelog.gz", gzip("CHANGELOG.md"));
  const licences = ["LICENSE", "THIRD-PARTY-NOTICES.txt"].map((name) =>
    readFileSync(join(folder, name), "utf8"),
  );
  write(tree, "usr/share/doc/weir/copyright", licences.join("\n"));
}

function placeConfiguration(tree) {
  const file = (name) => readFileSync(join(root, "deploy/debian", name));
  write(tree, "usr/lib/tmpfiles.d/weir.conf", file("tmpfiles.conf"));
  return write(tree, "etc/weir/config.yaml", file("config.yaml"));
}

function placeControl(tree, { architecture, conffile, version }) {
  const { description } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const fields = {
    Package: "weir",
    Version: version,
    Architecture: architecture,
    Maintainer: "weir <weir@localhost>",
    "Installed-Size": String(kibibytes(tree)),
    Depends: DEPENDS,
    Suggests: "nftables, iproute2",
    Section: "net",
    Priority: "optional",
    Description: description,
  };
  write(
    tree,
    "DEBIAN/control",
    Object.entries(fields)
      .map(([name, text]) => `${name}: ${text}\n`)
      .join(""),
  );
  write(tree, "DEBIAN/conffiles", `/${conffile}\n`);
  for (const script of ["postinst", "prerm", "postrm"]) {
    write(tree, `DEBIAN/${script}`, readFileSync(join(root, "deploy/debian", script)));
    chmodSync(join(tree, "DEBIAN", script), 0o755);
  }
}

function kibibytes(tree) {
  return Number.parseInt(execFileSync("du", ["-sk", tree], { encoding: "utf8" }), 10);
}

function write(tree, path, contents) {
  mkdirSync(dirname(join(tree, path)), { recursive: true });
  writeFileSync(join(tree, path), contents);
  return path;
}
