// act's artifact server signs upload addresses with padded base64; the blob client drops the `=`
// signs at the end of a query value, and the server then refuses. This puts them back.

import http from "node:http";

const SIGNATURE = /([?&]sig=)([\w-]+)(?=&|$)/;

export function padded(path) {
  return path.replace(SIGNATURE, (_, key, text) => key + text.padEnd(Math.ceil(text.length / 4) * 4, "="));
}

const request = http.request;

http.request = (options, ...rest) => {
  if (typeof options?.path === "string") options.path = padded(options.path);
  return request(options, ...rest);
};
