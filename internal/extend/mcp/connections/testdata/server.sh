#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
  *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
  *'"method":"tools/list"'*) answer '{"tools":[{"name":"echo","description":"ABOUT","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}' ;;
  *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"the server has heard it"}]}' ;;
  *'"method":"prompts/list"'*) answer '{"prompts":[{"name":"greet","description":"Greets somebody","arguments":[{"name":"who","required":true},{"name":"how"}]}]}' ;;
  *'"method":"prompts/get"'*)
    who=$(printf '%s' "$line" | sed -n 's/.*"who":"\([^"]*\)".*/\1/p') how=$(printf '%s' "$line" | sed -n 's/.*"how":"\([^"]*\)".*/\1/p')
    answer '{"messages":[{"role":"user","content":{"type":"text","text":"Greet '"$who $how"', as @server.sh says."}},{"role":"user","content":{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}}]}' ;;
  *'"method":"resources/list"'*) answer '{"resources":[{"uri":"note://one","name":"one","mimeType":"text/plain"}]}' ;;
  *'"method":"resources/templates/list"'*) answer '{"resourceTemplates":[]}' ;;
  *'"method":"resources/read"'*) answer '{"contents":[{"uri":"note://one","text":"what the note says"}]}' ;;
  *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
