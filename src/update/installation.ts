/** How the program that runs was installed, and whether it can be replaced there. */
import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { VERSION } from "#version.ts";
import { UpdateError } from "./update-error.ts";

/** As deploy/install.sh makes it: a folder for each version, and the link `weir` beside them that leads to one. */
export interface Installation {
  /** Real path of the folder that has all versions. */
  readonly parent: string;
  /** The link in it. */
  readonly link: string;
  /** Real path of the version that runs. */
  readonly folder: string;
  readonly version: string;
}

/** The folder of a build; of a checkout it means nothing. */
export function ownFolder(): string {
  return dirname(import.meta.dirname);
}

export function folderOf(version: string): string {
  return `weir-${version}`;
}

/** `folder` has a build of `version`. Throws `UpdateError` that says what to do instead where it was not installed by install.sh. */
export function findInstallation(folder: string, version = VERSION): Installation {
  if (version === "dev")
    throw new UpdateError("this is a checkout: git pull there, then npm ci, and restart weir");
  const real = realpathSync(folder);
  const parent = dirname(real);
  const link = join(parent, "weir");
  if (basename(real) === folderOf(version) && leadsTo(link, real) && isBuild(real, version))
    return { parent, link, folder: real, version };
  throw new UpdateError(adviceFor(real, link));
}

/** A version that deploy/install.sh or an update has put there: nothing else is ever replaced or removed. */
export function isBuild(folder: string, version: string): boolean {
  try {
    return (
      lstatSync(folder).isDirectory() &&
      basename(folder) === folderOf(version) &&
      lstatSync(join(folder, "weir")).isFile() &&
      readFileSync(join(folder, "version.txt"), "utf8").trim() === version
    );
  } catch {
    return false;
  }
}

function leadsTo(link: string, folder: string): boolean {
  try {
    readlinkSync(link); // a folder of this name is not to be replaced
    return realpathSync(link) === folder;
  } catch {
    return false;
  }
}

function adviceFor(folder: string, link: string): string {
  const inForce = realpathSync.native(existsSync(link) ? link : folder);
  if (inForce !== folder && isBuild(inForce, basename(inForce).slice(folderOf("").length)))
    return `${inForce} is in force, and this is ${folder}: ask ${link}/weir; weir upgrade -to ${link}/weir has it take over`;
  if (folder === "/usr/lib/weir")
    return "weir came as a Debian package: apt install ./weir_VERSION_ARCHITECTURE.deb, the newer one";
  if (folder === "/opt/weir" && ["/.dockerenv", "/run/.containerenv"].some((mark) => existsSync(mark)))
    return "weir runs from an image in a container: build or pull the newer image, and start a container of it";
  return `${folder} was not put there by deploy/install.sh, which makes a folder for each version and a link: run it once with the newer archive`;
}
