/** A path of this machine, in quotes or bare. */
const QUOTED = /(['"])\/(?:[^'"]*\/)?([^'"/]+)\1/g;
const BARE = /(?<![\w.:/-])\/(?:[^\s:'",;/]+\/)+([^\s:'",;/]+)/g;

/**
 * A message for clients of the API: files by their names, without the folders that hold them. `path`: the file that it is
 * about. The log has the whole message.
 */
export function withoutFolders(message: string, path: string): string {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const plain = folder.length > 1 ? message.replaceAll(folder, "") : message;
  return plain.replaceAll(QUOTED, "$1$2$1").replaceAll(BARE, "$1");
}
