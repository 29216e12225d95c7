// Starts `beebox debug --dap` for launch configurations of type `beebox`, and asks it who wrote a value.
const vscode = require('vscode');

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('beebox', {
      createDebugAdapterDescriptor(session) {
        const { args, beebox, cwd } = session.configuration;
        const folder = session.workspaceFolder && session.workspaceFolder.uri.fsPath;
        return new vscode.DebugAdapterExecutable(
          beebox || 'beebox',
          ['debug', ...args, '--dap'],
          { cwd: cwd || folder },
        );
      },
    }),
    vscode.commands.registerCommand('beebox.whoWrote', async () => {
      const session = vscode.debug.activeDebugSession;
      const expression = await vscode.window.showInputBox({ prompt: 'Expression, as port or ports[22]' });
      if (!session || !expression) {
        return;
      }
      const item = vscode.debug.activeStackItem;
      const frameId = item && item.frameId;
      try {
        await session.customRequest('beebox/whoWrote', { expression, frameId });
      } catch (error) {
        vscode.window.showErrorMessage(error.message);
      }
    }),
  );
};
