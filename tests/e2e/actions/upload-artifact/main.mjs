// Uploads one folder (or file) as the hosted action does: hidden files stay behind, the artifact's
// root is the folder itself, and an artifact of the same name is an error unless `overwrite`.

import { lstat, readdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import { ArtifactNotFoundError, DefaultArtifactClient } from "@actions/artifact";

import { input, settle } from "../inputs.mjs";
import "../padding.mjs";

async function filesBelow(folder) {
  const found = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith(".")) continue;
    const path = join(folder, entry.name);
    const kind = entry.isSymbolicLink() ? await stat(path) : await lstat(path);
    if (kind.isDirectory()) found.push(...(await filesBelow(path)));
    else found.push(path);
  }
  return found;
}

async function select(path) {
  if (/[*?[\]!\n]/.test(path)) throw new Error(`this stand-in knows no globs: ${path}`);
  const target = resolve(process.env.GITHUB_WORKSPACE, path);
  const kind = await stat(target).catch(() => null);
  if (kind === null) return { root: target, files: [] };
  if (kind.isDirectory()) return { root: target, files: await filesBelow(target) };
  return { root: dirname(target), files: [target] };
}

async function upload() {
  const [name, path, reaction] = ["name", "path", "if-no-files-found"].map(input);
  const { root, files } = await select(path);
  if (files.length === 0) {
    const message = `No files were found with the provided path: ${path}. No artifacts will be uploaded.`;
    if (reaction === "error") throw new Error(message);
    console.log(message);
    return;
  }
  const client = new DefaultArtifactClient();
  if (input("overwrite") === "true") {
    await client.deleteArtifact(name).catch((error) => {
      if (!(error instanceof ArtifactNotFoundError)) throw error;
    });
  }
  const { id, size } = await client.uploadArtifact(name, files, root);
  console.log(`artifact ${name}: ${files.length} files, ${size} bytes, id ${id}`);
}

settle(upload);
