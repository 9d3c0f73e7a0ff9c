// Downloads one artifact by name, or every artifact whose name matches a pattern. As with the
// hosted action a missing name is an error and a pattern without a match is none.

import { join, resolve } from "node:path";

import { DefaultArtifactClient } from "@actions/artifact";

import { input, settle } from "../inputs.mjs";

function matcher(pattern) {
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}

async function download() {
  const [name, pattern] = ["name", "pattern"].map(input);
  if ((name === "") === (pattern === "")) throw new Error("give either a name or a pattern");
  const target = resolve(process.env.GITHUB_WORKSPACE, input("path"));
  const client = new DefaultArtifactClient();
  if (name !== "") {
    const { artifact } = await client.getArtifact(name);
    await client.downloadArtifact(artifact.id, { path: target });
    return;
  }
  const { artifacts } = await client.listArtifacts({ latest: true });
  const matching = artifacts.filter((artifact) => matcher(pattern).test(artifact.name));
  for (const artifact of matching) {
    await client.downloadArtifact(artifact.id, { path: join(target, artifact.name) });
  }
  console.log(`Total of ${matching.length} artifact(s) downloaded`);
}

settle(download);
