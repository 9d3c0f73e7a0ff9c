// What a JavaScript action is given by its runner: inputs, and a way to fail with a message.

export function input(name) {
  return (process.env[`INPUT_${name.toUpperCase()}`] ?? "").trim();
}

export async function settle(work) {
  try {
    await work();
  } catch (error) {
    console.log(`::error::${String(error.message ?? error).replaceAll("\n", "%0A")}`);
    process.exitCode = 1;
  }
}
